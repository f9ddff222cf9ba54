// SPDX-License-Identifier: Apache-2.0
//
// The native record stream: one object a line, one write a record, so that a killed run leaves at
// most its last line unfinished.
#include "../src/output_file.h"
#include "../src/stride.h"

#include <flopmeter/core/record_json.h>
#include <flopmeter/core/sink.h>

namespace flopmeter {
namespace {

class JsonlSink final : public Sink {
 public:
  JsonlSink(std::string path, std::int64_t limit)
      : file_(std::move(path), OutputFile::Name::fresh), stride_(limit) {}

  Result<void> write(const StepRecord& record) override {
    if (!stride_.keep()) return {};
    line_.clear();
    JsonWriter json{line_};
    write_record(json, record, true);
    json.field("stride", stride_.stride()).end_object();
    line_.push_back('\n');
    const auto written = file_.append(line_);
    if (written) stride_.wrote(static_cast<std::int64_t>(line_.size()));
    return written;
  }
  Result<void> flush() override { return file_.touch(); }

 private:
  OutputFile file_;
  DiskStride stride_;
  std::string line_;
};

Result<std::unique_ptr<Sink>> make(const RunInfo& run, std::string_view target) {
  std::string path = target.empty() ? run.directory + "/records_" + run.stamp + ".rank" +
                                          std::to_string(run.rank) + ".jsonl"
                                    : std::string{target};
  return std::unique_ptr<Sink>{std::make_unique<JsonlSink>(std::move(path), run.disk_limit_bytes)};
}

}  // namespace

extern const SinkPlugin jsonl_plugin;
constinit const SinkPlugin jsonl_plugin{
    "jsonl", "every record as one JSON object a line (the native form)", make};

}  // namespace flopmeter
