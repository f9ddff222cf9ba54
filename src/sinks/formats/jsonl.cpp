// SPDX-License-Identifier: Apache-2.0
//
// The native record stream: one object a line, one write a record, so that a killed run leaves at
// most its last line unfinished.
#include "../src/bounded_file.h"

#include <flopmeter/core/record_json.h>
#include <flopmeter/core/sink.h>

namespace flopmeter {
namespace {

class JsonlSink final : public Sink {
 public:
  JsonlSink(const RunInfo& run, std::string path)
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

Result<std::unique_ptr<Sink>> make(const RunInfo& run, std::string_view target) {
  std::string path = target.empty() ? run.directory + "/records_" + run.stamp + ".rank" +
                                          std::to_string(run.rank) + ".jsonl"
                                    : std::string{target};
  return std::unique_ptr<Sink>{std::make_unique<JsonlSink>(run, std::move(path))};
}

}  // namespace

extern constinit const SinkPlugin sink_jsonl{
    "jsonl", "every record as one JSON object a line (the native form)", make};

}  // namespace flopmeter
