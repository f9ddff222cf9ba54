// SPDX-License-Identifier: Apache-2.0
#include "../command.h"
#include "../progress_line.h"

#include <flopmeter/core/files.h>
#include <flopmeter/core/text.h>
#include <flopmeter/report/report.h>
#include <flopmeter/runstore/run_directory.h>

#include <chrono>
#include <memory>

namespace flopmeter {
namespace {

struct Options {
  std::vector<std::string> directories;
  std::string output = "report.html";
  bool json = false;
};

/// The document of one run, or an array of those of several.
Result<std::string> documents(const std::vector<std::string>& directories) {
  const auto now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch());
  std::string all;
  for (const std::string& directory : directories) {
    ProgressLine line{directory};
    const auto json = report_json(directory,
                                  {.version = FLOPMETER_VERSION,
                                   .written_unix = now.count(),
                                   .progress = [&](double share) { line.show(share); }});
    if (!json) return json.error();
    all += (all.empty() ? "" : ",") + *json;
  }
  return directories.size() == 1 ? all : "[" + all + "]";
}

Exit run(Options options) {
  if (options.directories.empty()) options.directories = {default_run_directory()};
  const auto json = documents(options.directories);
  if (!json) return refuse(json.error());
  if (options.json) return print(*json + "\n");
  const std::string page = report_page(*json);
  if (options.output == "-") return print(page);
  if (const auto written = replace_file(options.output, page); !written)
    return refuse({ErrorCode::io_error, written.error().message});
  return print(printable(options.output) + ": open it in a browser\n");
}

std::function<Exit()> set_up(Arguments& app) {
  auto options = std::make_shared<Options>();
  app.add_option(
      "dir",
      options->directories,
      "run directory; several are compared (default: the latest run in logs/perf_monitor)");
  app.add_option("-o,--output", options->output, "output file; - for standard output")
      ->capture_default_str();
  app.add_flag("--json", options->json, "print the data of the page as JSON");
  return [options] { return run(*options); };
}

}  // namespace

extern constinit const Command command_report{.name = "report",
                                              .help = "Write a run as a self-contained HTML page",
                                              .order = 12,
                                              .set_up = set_up};

}  // namespace flopmeter
