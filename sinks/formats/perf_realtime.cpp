// SPDX-License-Identifier: Apache-2.0
//
// perf_realtime.log: the rows of the running session, one line each, for `tail -f`.  Each start
// takes the name over with a new file, so that two runs on one directory never write into each
// other's lines.
#include "../src/interval_rows.h"
#include "../src/metrics_table.h"
#include "../src/output_file.h"
#include "../src/stride.h"

namespace flopmeter {
namespace {

class PerfRealtimeSink final : public Sink {
 public:
  PerfRealtimeSink(const RunInfo& run, std::string path)
      : breakdown_(run.breakdown),
        rows_(run),
        file_(std::move(path), OutputFile::Name::replace, metrics_header(run)),
        stride_(run.disk_limit_bytes) {}

  Result<void> write(const StepRecord& record) override {
    const auto row = rows_.add(record);
    return row ? put(*row) : Result<void>{};
  }
  Result<void> flush() override { return file_.touch(); }
  Result<void> finish(const std::vector<Finding>& /*findings*/) override {
    const auto row = rows_.rest();
    return row ? put(*row) : flush();
  }

 private:
  Result<void> put(const IntervalRow& row) {
    if (!stride_.keep()) return {};
    std::string text = metrics_line(row);
    if (const std::string phases = breakdown_ ? phases_text(row) : ""; !phases.empty()) {
      text.insert(text.size() - 1, "   " + phases);
    }
    const auto written = file_.append(text);
    if (written) stride_.wrote(static_cast<std::int64_t>(text.size()));
    return written;
  }

  bool breakdown_;
  IntervalRows rows_;
  OutputFile file_;
  DiskStride stride_;
};

Result<std::unique_ptr<Sink>> make(const RunInfo& run, std::string_view target) {
  std::string path = target.empty() ? run.directory + "/perf_realtime.log" : std::string{target};
  return std::unique_ptr<Sink>{std::make_unique<PerfRealtimeSink>(run, std::move(path))};
}

}  // namespace

extern const SinkPlugin perf_realtime_plugin;
constinit const SinkPlugin perf_realtime_plugin{
    "perf_realtime", "the same rows, to follow with tail -f", make};

}  // namespace flopmeter
