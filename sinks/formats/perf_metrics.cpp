// SPDX-License-Identifier: Apache-2.0
//
// perf_metrics_<stamp>.log: the text table of FlagScale's performance monitor, with MFU added at
// the end of a row and, under --perf-breakdown, the phases below it.
#include "../src/interval_rows.h"
#include "../src/metrics_table.h"
#include "../src/output_file.h"
#include "../src/stride.h"

#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

class PerfMetricsSink final : public Sink {
 public:
  PerfMetricsSink(const RunInfo& run, std::string path)
      : breakdown_(run.breakdown),
        rows_(run),
        file_(std::move(path), OutputFile::Name::fresh, metrics_header(run)),
        stride_(run.disk_limit_bytes) {}

  Result<void> write(const StepRecord& record) override {
    const auto row = rows_.add(record);
    return row ? put(*row) : Result<void>{};
  }
  Result<void> flush() override { return file_.touch(); }
  Result<void> finish(const std::vector<Finding>& findings) override {
    const auto row = rows_.rest();
    if (const auto last = row ? put(*row) : flush(); !last) return last;
    std::string text;
    for (const Finding& finding : findings) {
      text.append("# ")
          .append(printable(finding.rule))
          .append(": ")
          .append(printable(finding.summary))
          .append("\n");
    }
    return text.empty() ? Result<void>{} : file_.append(text);
  }

 private:
  Result<void> put(const IntervalRow& row) {
    if (!stride_.keep()) return {};
    std::string text = metrics_line(row);
    if (const std::string phases = breakdown_ ? phases_text(row) : ""; !phases.empty()) {
      text.append("    ").append(phases).append("\n");
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
  std::string path =
      target.empty() ? run.directory + "/perf_metrics_" + run.stamp + ".log" : std::string{target};
  return std::unique_ptr<Sink>{std::make_unique<PerfMetricsSink>(run, std::move(path))};
}

}  // namespace

extern const SinkPlugin perf_metrics_plugin;
constinit const SinkPlugin perf_metrics_plugin{
    "perf_metrics", "text table, one row a log interval", make};

}  // namespace flopmeter
