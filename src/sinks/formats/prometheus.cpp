// SPDX-License-Identifier: Apache-2.0
//
// The metrics as a file for the textfile collector of the node exporter, replaced at most once per
// second.
#include "../src/output_file.h"
#include "../src/prometheus_text.h"

#include <flopmeter/runstore/run_layout.h>

namespace flopmeter {
namespace {

class PrometheusSink final : public Sink {
 public:
  PrometheusSink(const RunContext& run, std::string path) : metrics_(run), path_(std::move(path)) {}

  Result<void> write(const StepRecord& record) override {
    metrics_.add(record);
    changed_ = true;
    return {};
  }
  Result<void> flush() override {
    if (!changed_) return {};
    FileReplacement file{path_};
    std::string text = metrics_.text();
    file.take(text);
    const auto done = file.commit();
    changed_ = !done;
    return done;
  }

 private:
  PrometheusText metrics_;
  std::string path_;
  bool changed_ = true;
};

Result<std::unique_ptr<Sink>> make(const RunContext& run, std::string_view target) {
  std::string path = target.empty() ? RunLayout{run}.prometheus() : std::string{target};
  return std::unique_ptr<Sink>{std::make_unique<PrometheusSink>(run, std::move(path))};
}

}  // namespace

extern constinit const SinkPlugin sink_prometheus{
    "prometheus", "metrics file for the textfile collector of the node exporter", make};

}  // namespace flopmeter
