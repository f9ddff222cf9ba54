// SPDX-License-Identifier: Apache-2.0
#include "../command.h"
#include "../live_terminal.h"

#include <flopmeter/analysis/run_evidence.h>
#include <flopmeter/core/text.h>
#include <flopmeter/report/frame.h>
#include <flopmeter/report/live_findings.h>
#include <flopmeter/report/run_follower.h>
#include <flopmeter/report/style.h>
#include <flopmeter/runstore/run_directory.h>

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

namespace flopmeter {
namespace {

struct Options {
  std::string directory;
  double interval = 1;
  bool once = false;
  bool json = false;
};

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::vector<std::string> frame(const RunFollower& run,
                               const std::vector<Finding>& findings,
                               const std::optional<StepTotals>& whole,
                               TerminalSize size) {
  return draw_frame({run.run().metadata, run.totals(), findings, now(), run.window().size(), whole},
                    {size.columns, size.rows},
                    colored());
}

/// All steps of the run; empty if reading what the follower skipped would take long.
std::optional<StepTotals> whole_run(const RunFollower& follower) {
  constexpr std::uintmax_t most_bytes = 64 << 20;  // about half a second
  if (const auto known = follower.totals().run()) return known;
  std::uintmax_t bytes = 0;
  for (const RankFile& file : follower.run().files) {
    std::error_code code;
    const auto size = std::filesystem::file_size(file.path, code);
    if (!code) bytes += size;
  }
  return bytes <= most_bytes ? read_evidence(follower.run()).totals : std::nullopt;
}

Exit print_once(const RunFollower& run) {
  std::string text;
  for (const std::string& line :
       frame(run, live_findings(run), whole_run(run), {terminal_size().columns, 0}))
    text += line + "\n";
  return print(text);
}

Exit print_totals(const RunFollower& run) {
  const StepTotals all = run.totals().all();
  const auto whole = whole_run(run);
  const bool any = all.steps > 0;
  return print_json([&](JsonWriter& json) {
    json.begin_object()
        .field("schema", "flopmeter.watch/2")
        .field("step", any ? std::optional{all.last_step} : std::nullopt)
        .field("time_unix", any ? std::optional{all.last_unix} : std::nullopt)
        .field("ranks", run.totals().ranks.size())
        .field("window_steps", all.steps)
        .field("mfu", all.mfu())
        .field("mfu_run", whole ? whole->mfu() : std::nullopt)
        .field("hfu", all.hfu())
        .field("step_seconds", all.step_seconds())
        .field("tokens_per_second", all.tokens_per_second());
    json.key("phases").begin_object();
    for (std::size_t i = 0; i < phase_count; ++i) {
      if (all.phases[i])
        json.field(to_string(static_cast<Phase>(i)),
                   *all.phases[i] / static_cast<double>(all.steps));
    }
    json.end_object().key("findings").begin_array();
    for (const Finding& finding : live_findings(run)) write_json(json, finding);
    json.end_array().end_object();
  });
}

bool is_live_terminal() {
  const char* kind = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe)
  return isatty(STDOUT_FILENO) != 0 && kind != nullptr && std::string_view{kind} != "dumb";
}

Exit watch(RunFollower& run, double interval) {
  constexpr double between_diagnoses = 3;
  Result<bool> state = true;
  {
    LiveTerminal terminal;
    std::vector<Finding> findings = live_findings(run);
    double diagnosed = now();
    while (terminal.show(frame(run, findings, run.totals().run(), terminal_size()))) {
      const auto event = terminal.wait(interval);
      if (event == LiveTerminal::Event::quit) break;
      if (event != LiveTerminal::Event::time) continue;
      state = run.refresh();
      if (!state) break;
      if (now() - diagnosed < between_diagnoses) continue;
      findings = live_findings(run);
      diagnosed = now();
    }
  }
  return state ? 0 : refuse(state.error());
}

/// Opens the run; on a terminal it waits for a run that has not begun.
Result<RunFollower> begin(const Options& options, bool live) {
  bool notified = false;
  while (true) {
    RunFollower run{options.directory.empty() ? default_run_directory() : options.directory};
    const auto read = run.refresh();
    if (read) return run;
    if (!live || read.error().code != ErrorCode::not_found) return read.error();
    if (!std::exchange(notified, true)) notify("waiting for a run: " + read.error().message);
    std::this_thread::sleep_for(std::chrono::duration<double>{options.interval});
  }
}

Exit run(const Options& options) {
  const bool live = !options.json && !options.once && is_live_terminal();
  auto begun = begin(options, live);
  if (!begun) return refuse(begun.error());
  RunFollower& run = *begun;
  if (!run.run().note.empty()) notify(run.run().note);
  if (options.json) return print_totals(run);
  if (!live) return print_once(run);
  return watch(run, options.interval);
}

std::function<Exit()> set_up(Arguments& app) {
  auto options = std::make_shared<Options>();
  app.add_option(
      "dir", options->directory, "run directory (default: the latest run in logs/perf_monitor)");
  app.add_option("--interval", options->interval, "seconds between two updates")
      ->check(check_positive_number)
      ->capture_default_str();
  app.add_flag(
      "--once", options->once, "print one frame and exit, as if the output is not a terminal");
  app.add_flag("--json", options->json, "print the latest values as JSON and exit");
  return [options] { return run(*options); };
}

}  // namespace

extern constinit const Command command_watch{
    .name = "watch",
    .help = "Follow a run live in the terminal: MFU, phases, ranks, findings",
    .order = 11,
    .set_up = set_up};

}  // namespace flopmeter
