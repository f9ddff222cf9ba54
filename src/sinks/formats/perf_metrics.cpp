// SPDX-License-Identifier: Apache-2.0
//
// perf_metrics_<stamp>.log: the text table of the FlagScale performance monitor, with MFU at the
// end of a row and, with --perf-breakdown, the phases below it.
#include "../src/bounded_file.h"
#include "../src/metrics_table.h"

#include <flopmeter/core/text.h>
#include <flopmeter/runstore/run_layout.h>

namespace flopmeter {
namespace {

class PerfMetricsSink final : public IntervalFileSink {
 public:
  PerfMetricsSink(const RunContext& run, std::string path)
      : IntervalFileSink(run, std::move(path), OutputFile::Name::fresh, metrics_header(run)),
        breakdown_(run.breakdown) {}

  Result<void> finish(const std::vector<Finding>& findings) override {
    if (const auto last = IntervalFileSink::finish(findings); !last) return last;
    std::string text;
    for (const Finding& finding : findings) {
      text.append("# ")
          .append(printable(finding.rule))
          .append(": ")
          .append(printable(finding.summary))
          .append("\n");
    }
    return text.empty() ? Result<void>{} : file().append(text);
  }

 private:
  std::string text_of(const IntervalRow& row) override {
    std::string text = metrics_line(row);
    if (const std::string phases = breakdown_ ? phases_text(row) : ""; !phases.empty()) {
      text.append("    ").append(phases).append("\n");
    }
    return text;
  }

  bool breakdown_;
};

Result<std::unique_ptr<Sink>> make(const RunContext& run, std::string_view target) {
  std::string path = target.empty() ? RunLayout{run}.perf_metrics() : std::string{target};
  return std::unique_ptr<Sink>{std::make_unique<PerfMetricsSink>(run, std::move(path))};
}

}  // namespace

extern constinit const SinkPlugin sink_perf_metrics{
    "perf_metrics", "text table, one row per log interval", make};

}  // namespace flopmeter
