// SPDX-License-Identifier: Apache-2.0
//
// One line per log interval, MFU first; color only on a terminal.  If the terminal or pipe cannot
// take a line at once, the line is lost: nothing waits for a reader.
#include "../src/interval_rows.h"
#include "../src/output_file.h"

#include <flopmeter/core/text.h>
#include <flopmeter/core/utilization.h>

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace flopmeter {
namespace {

class ConsoleSink final : public Sink {
 public:
  ConsoleSink(const RunContext& run, int fd)
      : breakdown_(run.breakdown),
        rows_(run),
        utilization_(run.metadata.peaks),
        fd_(fd),
        // NOLINTNEXTLINE(concurrency-mt-unsafe): read once, at start
        color_(isatty(fd) == 1 && std::getenv("NO_COLOR") == nullptr) {}

  Result<void> write(const StepRecord& record) override {
    const auto row = rows_.add(record);
    return row ? put(*row) : Result<void>{};
  }
  Result<void> found(const std::vector<Finding>& findings) override {
    if (findings.empty()) return print("    no findings anymore\n");
    return print_findings(findings);
  }
  Result<void> finish(const std::vector<Finding>& findings) override {
    const auto row = rows_.rest();
    if (const auto last = row ? put(*row) : Result<void>{}; !last) return last;
    return print_findings(findings);
  }

 private:
  /// "41.3 %", or the reason why it is unknown.
  [[nodiscard]] std::string mfu_text(const IntervalRow& row) const {
    if (row.mfu) return percent(*row.mfu);
    if (!row.last.model_flops) return "n/a (FLOPs unknown)";
    std::array<WideInt, dtype_count> flops{};
    for (std::size_t i = 0; i < dtype_count; ++i) flops[i] = row.last.model_flops_by_dtype[i];
    const auto missing = utilization_.missing_peak(flops);
    return missing ? "n/a (no peak for " + std::string{to_string(*missing)} + ")" : "n/a";
  }

  Result<void> put(const IntervalRow& row) {
    std::string line =
        color_ ? "\x1b[1;36mMFU " + mfu_text(row) + "\x1b[0m" : "MFU " + mfu_text(row);
    const auto part = [&line](const std::string& text) { line.append(" | ").append(text); };
    if (row.mfu_run) line.append(" (run " + percent(*row.mfu_run) + ")");
    part("step " + std::to_string(row.last.step));
    if (row.last.loss) part("loss " + fixed(*row.last.loss, 4));
    if (row.tflops_per_device) part(fixed(*row.tflops_per_device, 2) + " TFLOP/s per device");
    if (row.tokens_per_second) part(si(*row.tokens_per_second) + " tokens/s");
    if (row.samples_per_second) part(fixed(*row.samples_per_second, 1) + " samples/s");
    part(duration(row.step_seconds));
    if (row.memory_gb) part(fixed(*row.memory_gb, 2) + " GB");
    line.push_back('\n');
    if (const std::string phases = breakdown_ ? phases_text(row) : ""; !phases.empty()) {
      line.append("    ").append(phases).append("\n");
    }
    return print(line);
  }

  Result<void> print_findings(const std::vector<Finding>& findings) const {
    for (const Finding& finding : findings) {
      std::string line = "    " + finding.rule;
      if (finding.share) line += " costs " + percent(*finding.share) + " of the time";
      line += ": " + finding.summary + "; " + finding.recommendation;
      if (const auto printed = print(printable(line) + "\n"); !printed) return printed;
    }
    return {};
  }

  Result<void> print(std::string_view text) const {
    pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0)
      return system_error("write to", "the console", EAGAIN);
    if (::write(fd_, text.data(), text.size()) < 0)
      return system_error("write to", "the console", errno);
    return {};
  }

  bool breakdown_;
  IntervalRows rows_;
  Utilization utilization_;
  int fd_;
  bool color_;
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
