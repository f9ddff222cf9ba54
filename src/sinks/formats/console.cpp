// SPDX-License-Identifier: Apache-2.0
//
// Lines for a person: device, peak, and directory first; then one line per log interval, at most
// one in ten seconds; each finding once; a summary of at most five lines at the end.  Every line
// begins with the same prefix.  On a terminal a line first clears the line of the cursor, where a
// progress bar may be, and is written at once, so that a bar redraws below it.  If the terminal or
// pipe cannot take a line at once, the line is lost: nothing waits for a reader.
#include "../src/interval_rows.h"
#include "../src/output_file.h"

#include <flopmeter/core/files.h>
#include <flopmeter/core/text.h>
#include <flopmeter/core/utilization.h>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <utility>

namespace flopmeter {
namespace {

constexpr double least_seconds = 10;      // between two lines
constexpr double least_share = 0.01;      // of the time that a finding must be worth
constexpr std::size_t most_findings = 3;  // in the summary
constexpr std::string_view prefix = "flopmeter  ";

/// Phases in which no model FLOPs run.
constexpr Phase overheads[] = {Phase::data, Phase::communication, Phase::optimizer, Phase::other};

class ConsoleSink final : public Sink {
 public:
  ConsoleSink(const RunContext& run, int fd)
      : run_(run),
        rows_(run, least_seconds),
        utilization_(run.metadata.peaks),
        fd_(fd),
        terminal_(isatty(fd) == 1),
        // NOLINTNEXTLINE(concurrency-mt-unsafe): read once, at start
        color_(terminal_ && std::getenv("NO_COLOR") == nullptr) {}

  Result<void> write(const StepRecord& record) override {
    const auto row = rows_.add(record);
    std::string text;
    totals_.add(record);
    if (record.tag == StepTag::train) {
      last_ = record;
      if (!std::exchange(started_, true)) append_line(text, start_text(record));
    }
    if (row) append_row(text, *row);
    return print(text);
  }
  Result<void> found(const std::vector<Finding>& findings) override {
    std::string text;
    for (const Finding& finding : findings) {
      if (finding.share.value_or(1) < least_share || !reported_.insert(finding.rule).second)
        continue;
      append_line(text, headline(finding) + "; " + finding.recommendation);
    }
    return print(text);
  }
  Result<void> finish(const std::vector<Finding>& findings) override {
    if (!started_) return {};
    std::string text;
    append_line(text, summary_text());
    if (run_.breakdown) append_phases(text, mean_step());
    std::size_t shown = 0;
    for (const Finding& finding : findings) {
      if (finding.share.value_or(1) < least_share || shown++ >= most_findings) continue;
      append_line(text, headline(finding));
    }
    if (has_records()) append_line(text, "details: flopmeter diagnose " + run_.directory);
    return print(text);
  }

 private:
  /// "41.3 %", or the reason why it is unknown.
  [[nodiscard]] std::string mfu_text(const std::optional<double>& mfu,
                                     const StepRecord& last) const {
    if (mfu) return percent(*mfu);
    if (!last.model_flops) return "n/a (FLOPs unknown)";
    const auto missing = utilization_.missing_peak(flops_of(last));
    return missing ? "n/a (no peak for " + std::string{to_string(*missing)} + ")" : "n/a";
  }

  static std::array<WideInt, dtype_count> flops_of(const StepRecord& record) {
    std::array<WideInt, dtype_count> flops{};
    for (std::size_t i = 0; i < dtype_count; ++i) flops[i] = record.model_flops_by_dtype[i];
    return flops;
  }

  /// Whether the other sinks can write to the directory.
  [[nodiscard]] bool has_records() const { return access(run_.directory.c_str(), W_OK) == 0; }

  /// Device, the peak that MFU is measured against with its source, and where the records are.
  [[nodiscard]] std::string start_text(const StepRecord& record) const {
    const PeakTable& peaks = run_.metadata.peaks;
    std::string text = peaks.device.empty() ? "unknown device" : peaks.device;
    const auto flops = flops_of(record);
    const auto most = std::max_element(flops.begin(), flops.end());
    const auto dtype = static_cast<Dtype>(most - flops.begin());
    if (const auto peak = *most > 0 ? peaks.peak(dtype) : std::nullopt) {
      text += " | " + std::string{to_string(dtype)} + " peak " + si(peak->value) + "FLOP/s (" +
              peaks.source.substr(0, std::min(peaks.source.find(" ["), peaks.source.find(" ("))) +
              ")";
    }
    if (run_.world_size() > 1)
      text += " | rank " + std::to_string(record.rank) + " of " + std::to_string(run_.world_size());
    return text + (has_records() ? " | records in " : " | no records: cannot write to ") +
           run_.directory;
  }

  [[nodiscard]] std::string summary_text() const {
    std::string text = "MFU " + mfu_text(totals_.mfu(), last_) + " | " +
                       (run_.world_size() > 1 ? "rank " + std::to_string(last_.rank) + " | " : "") +
                       grouped(totals_.steps) + (totals_.steps == 1 ? " step in " : " steps in ") +
                       duration({totals_.seconds});
    if (const auto rate = totals_.flops_per_second()) text += " | " + si(*rate) + "FLOP/s";
    if (const auto rate = totals_.tokens_per_second())
      text += " | " + si(*rate * run_.data_parallel()) + " tokens/s";
    return text;
  }

  void append_line(std::string& text, const std::string& line) const {
    if (terminal_) text += "\r\x1b[K";
    text.append(prefix).append(printable(line)).push_back('\n');
  }

  void append_row(std::string& text, const IntervalRow& row) const {
    const auto planned = run_.metadata.total_steps;
    std::string line =
        "step " + std::to_string(row.last.step) + (planned ? "/" + std::to_string(*planned) : "");
    const auto part = [&line](const std::string& more) { line.append(" | ").append(more); };
    if (row.last.loss) part("loss " + fixed(*row.last.loss, 4));
    part("MFU " + mfu_text(row.mfu, row.last) +
         (row.mfu_run ? " (run " + percent(*row.mfu_run) + ")" : ""));
    part(duration(row.step_seconds));
    if (row.tokens_per_second) part(si(*row.tokens_per_second) + " tokens/s");
    if (row.samples_per_second && !row.tokens_per_second)
      part(si(*row.samples_per_second) + " samples/s");
    if (row.tflops_per_device) part(si(*row.tflops_per_device * 1e12) + "FLOP/s");
    if (row.memory_gb) part(fixed(*row.memory_gb, 1) + " GiB");
    if (const std::string largest = overhead_text(row); !largest.empty()) part(largest);
    if (!row.bound.empty()) part(std::string{row.bound});
    if (const auto left = totals_.remaining(planned); left && left->value > 0)
      part("ETA " + duration(*left));
    append_line(text, line);
    if (run_.breakdown) append_phases(text, row);
    if (color_) color_mfu(text);
  }

  void append_phases(std::string& text, const IntervalRow& row) const {
    if (const std::string phases = phases_text(row); !phases.empty())
      append_line(text, "  " + phases);
  }

  /// The phases of all train steps.
  [[nodiscard]] IntervalRow mean_step() const {
    IntervalRow row;
    row.step_seconds = totals_.step_seconds().value_or(Seconds{});
    for (std::size_t i = 0; i < phase_count; ++i) {
      if (totals_.phases[i])
        row.phases[i] = Seconds{*totals_.phases[i] / static_cast<double>(totals_.steps)};
    }
    return row;
  }

  /// "data 51 %": the phase without model FLOPs that takes most, if it takes a twentieth.
  static std::string overhead_text(const IntervalRow& row) {
    double most = 0.05 * row.step_seconds.value;
    std::string text;
    for (const Phase phase : overheads) {
      const auto& seconds = row.phases[static_cast<std::size_t>(phase)];
      if (!seconds || !(seconds->value > most)) continue;
      most = seconds->value;
      text = std::string{to_string(phase)} + " " +
             fixed(100 * seconds->value / row.step_seconds.value, 0) + " %";
    }
    return text;
  }

  static void color_mfu(std::string& text) {
    const std::size_t begin = text.find("| MFU ") + 2;
    const std::size_t end = text.find(" %", begin);
    if (begin < 2 || end == std::string::npos || text.find('|', begin) < end) return;
    text.insert(end + 2, "\x1b[0m").insert(begin, "\x1b[1;36m");
  }

  [[nodiscard]] Result<void> print(std::string_view text) const {
    if (text.empty() || !is_standard_stream(fd_)) return {};
    pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0)
      return system_error("write to", "the console", EAGAIN);
    if (::write(fd_, text.data(), text.size()) < 0)
      return system_error("write to", "the console", errno);
    return {};
  }

  RunContext run_;
  IntervalRows rows_;
  Utilization utilization_;
  StepTotals totals_;
  StepRecord last_;
  std::set<std::string> reported_;  ///< rules whose finding was printed
  int fd_;
  bool terminal_;
  bool color_;
  bool started_ = false;
};

Result<std::unique_ptr<Sink>> make(const RunContext& run, std::string_view target) {
  if (!target.empty() && target != "stdout" && target != "stderr") {
    return Error{ErrorCode::invalid_argument,
                 "unknown console target '" + printable(target) + "'; use stdout or stderr"};
  }
  return std::unique_ptr<Sink>{
      std::make_unique<ConsoleSink>(run, target == "stdout" ? STDOUT_FILENO : STDERR_FILENO)};
}

}  // namespace

extern constinit const SinkPlugin sink_console{
    "console", "one line per log interval on the terminal (stderr or stdout)", make};

}  // namespace flopmeter
