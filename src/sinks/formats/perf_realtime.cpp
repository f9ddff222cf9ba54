// SPDX-License-Identifier: Apache-2.0
//
// perf_realtime.log: the rows of the current start, one line each, for `tail -f`.  A start replaces
// the file of an earlier one.  If another program writes a file of that name, this one is
// perf_realtime.1.log.
#include "../src/bounded_file.h"
#include "../src/metrics_table.h"

#include <flopmeter/runstore/run_layout.h>

namespace flopmeter {
namespace {

class PerfRealtimeSink final : public IntervalFileSink {
 public:
  PerfRealtimeSink(const RunContext& run, std::string path)
      : IntervalFileSink(run, std::move(path), OutputFile::Name::replace, metrics_header(run)),
        breakdown_(run.breakdown) {}

 private:
  std::string text_of(const IntervalRow& row) override {
    std::string text = metrics_line(row);
    if (const std::string phases = breakdown_ ? phases_text(row) : ""; !phases.empty()) {
      text.insert(text.size() - 1, "   " + phases);
    }
    return text;
  }

  bool breakdown_;
};

Result<std::unique_ptr<Sink>> make(const RunContext& run, std::string_view target) {
  std::string path = target.empty() ? RunLayout{run}.perf_realtime() : std::string{target};
  return std::unique_ptr<Sink>{std::make_unique<PerfRealtimeSink>(run, std::move(path))};
}

}  // namespace

extern constinit const SinkPlugin sink_perf_realtime{
    "perf_realtime", "the rows of perf_metrics, to follow with tail -f", make};

}  // namespace flopmeter
