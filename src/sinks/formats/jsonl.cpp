// SPDX-License-Identifier: Apache-2.0
//
// The record stream: one object per line and one write per record, so that a killed run leaves at
// most its last line incomplete.
#include "../src/bounded_file.h"

#include <flopmeter/core/sink.h>
#include <flopmeter/runstore/record_stream.h>
#include <flopmeter/runstore/run_layout.h>

namespace flopmeter {
namespace {

class JsonlSink final : public Sink {
 public:
  JsonlSink(const RunContext& run, std::string path)
      : file_(run, std::move(path), OutputFile::Name::fresh) {}

  Result<void> write(const StepRecord& record) override {
    if (!file_.keep()) return {};
    line_.clear();
    JsonWriter json{line_};
    write_record(json, record, true);
    json.field("stride", file_.stride()).end_object();
    line_.push_back('\n');
    return file_.append(line_);
  }
  Result<void> flush() override { return file_.touch(); }

 private:
  BoundedFile file_;
  std::string line_;
};

Result<std::unique_ptr<Sink>> make(const RunContext& run, std::string_view target) {
  std::string path = target.empty() ? RunLayout{run}.records() : std::string{target};
  return std::unique_ptr<Sink>{std::make_unique<JsonlSink>(run, std::move(path))};
}

}  // namespace

extern constinit const SinkPlugin sink_jsonl{
    "jsonl", "every record as one JSON object per line (the native format)", make};

}  // namespace flopmeter
