// SPDX-License-Identifier: Apache-2.0
//
// perf_realtime.log: the rows of the running session, one line each, for `tail -f`.  Each start
// takes the name over with a new file, so that two runs on one directory never write into each
// other's lines.
#include "../src/bounded_file.h"
#include "../src/metrics_table.h"

namespace flopmeter {
namespace {

class PerfRealtimeSink final : public IntervalFileSink {
 public:
  PerfRealtimeSink(const RunInfo& run, std::string path)
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

Result<std::unique_ptr<Sink>> make(const RunInfo& run, std::string_view target) {
  std::string path = target.empty() ? run.directory + "/perf_realtime.log" : std::string{target};
  return std::unique_ptr<Sink>{std::make_unique<PerfRealtimeSink>(run, std::move(path))};
}

}  // namespace

extern constinit const SinkPlugin sink_perf_realtime{
    "perf_realtime", "the same rows, to follow with tail -f", make};

}  // namespace flopmeter
