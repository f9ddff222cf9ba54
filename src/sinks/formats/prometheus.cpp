// SPDX-License-Identifier: Apache-2.0
//
// The metrics as a file for the node exporter's textfile collector, replaced whole at most once a
// second.
#include "../src/output_file.h"
#include "../src/prometheus_text.h"

namespace flopmeter {
namespace {

class PrometheusSink final : public Sink {
 public:
  PrometheusSink(const RunInfo& run, std::string path) : metrics_(run), path_(std::move(path)) {}

  Result<void> write(const StepRecord& record) override {
    metrics_.add(record);
    changed_ = true;
    return {};
  }
  Result<void> flush() override {
    if (!changed_) return {};
    const auto done = replace_file(path_, metrics_.text());
    changed_ = !done;
    return done;
  }

 private:
  PrometheusText metrics_;
  std::string path_;
  bool changed_ = true;
};

Result<std::unique_ptr<Sink>> make(const RunInfo& run, std::string_view target) {
  std::string path = target.empty()
                         ? run.directory + "/metrics.rank" + std::to_string(run.rank) + ".prom"
                         : std::string{target};
  return std::unique_ptr<Sink>{std::make_unique<PrometheusSink>(run, std::move(path))};
}

}  // namespace

extern constinit const SinkPlugin sink_prometheus{
    "prometheus", "metrics file for the node exporter's textfile collector", make};

}  // namespace flopmeter
