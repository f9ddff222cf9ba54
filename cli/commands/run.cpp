// SPDX-License-Identifier: Apache-2.0
//
// Runs a training command with the monitor attached: sets the environment and becomes the command.
#include "../option_flags.h"
#include "../python_package.h"

#include <flopmeter/core/text.h>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

namespace flopmeter {
namespace {

namespace fs = std::filesystem;

/// What a shell says of a command that it cannot start.
constexpr Exit not_found = 127;
constexpr Exit not_executable = 126;

struct Request {
  OptionFlags flags;
  std::string peak, device, dtype, convention;
};

Error wrong(std::string what) {
  return {ErrorCode::invalid_argument, std::move(what) + "; see 'flopmeter run --help'"};
}

/// The command: what CLI11 left, then what stood behind "--" (which is ours if nothing was left).
Result<std::vector<std::string>> command_of(std::vector<std::string> words) {
  if (!words.empty() && words.front().starts_with('-'))
    return wrong("no option is called '" + printable(words.front()) + "'");
  const std::vector<std::string>& behind = words_behind();
  if (!words.empty() && !behind.empty()) words.emplace_back("--");
  words.insert(words.end(), behind.begin(), behind.end());
  if (words.empty()) return wrong("give a command: flopmeter run -- python train.py");
  return words;
}

void set(const char* name, const std::string& value) {
  if (!value.empty()) ::setenv(name, value.c_str(), 1);
}

/// Puts the folder of the start-up hook before what PYTHONPATH holds.
void put_first_in_python_path(const std::string& folder) {
  const char* before = std::getenv("PYTHONPATH");
  const bool any = before != nullptr && *before != '\0';  // an empty entry would be the cwd
  set("PYTHONPATH", any ? folder + ":" + before : folder);
}

Exit become(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& word : command) {
    argv.push_back(
        const_cast<char*>(word.c_str()));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  }
  argv.push_back(nullptr);
  ::execvp(argv.front(), argv.data());
  const int reason = errno;
  refuse({ErrorCode::io_error,
          "cannot start '" + printable(command.front()) + "': " + std::strerror(reason)});
  return reason == ENOENT ? not_found : not_executable;
}

Exit run(const Request& request, const std::vector<std::string>& words) {
  const auto command = command_of(words);
  if (!command) return refuse(command.error());
  const auto settings = request.flags.environment();
  if (!settings) return refuse(settings.error());
  if (const auto deaf = isolated_python(*command)) {
    say("'" + printable(*deaf) + "' takes no start-up hook: the command runs unwatched");
    return become(*command);
  }
  const auto package = python_package();
  if (!package) return refuse(package.error());
  for (const auto& [name, value] : *settings) ::setenv(name.c_str(), value.c_str(), 1);
  set("FLOPMETER_RUN_PEAK", request.peak);
  set("FLOPMETER_RUN_DEVICE", request.device);
  set("FLOPMETER_RUN_DTYPE", request.dtype);
  set("FLOPMETER_RUN_CONVENTION", request.convention);
  put_first_in_python_path(*package + "/launcher/startup");
  return become(*command);
}

std::function<Exit()> set_up(CLI::App& app) {
  auto request = std::make_shared<Request>();
  app.prefix_command();
  app.footer("The command follows the options: flopmeter run --dir logs/run -- python train.py");
  request->flags.add_to(app);
  app.add_option("--peak", request->peak, "peak of one device in TFLOP/s, or measured")
      ->check([](const std::string& text) {
        return text == "measured" ? std::string{} : check_positive_number(text);
      });
  app.add_option("--device", request->device, "what it runs on, by a name of 'flopmeter devices'");
  app.add_option(
      "--dtype", request->dtype, "number format of the matmuls (that of the parameters)");
  app.add_option("--convention", request->convention, "what counts as model FLOPs (model-v1)");
  return [request, &app] { return run(*request, app.remaining()); };
}

}  // namespace

extern constinit const Command command_run{
    .name = "run",
    .help = "Runs a training command with the monitor attached, no code changed",
    .order = 5,
    .set_up = set_up};

}  // namespace flopmeter
