// SPDX-License-Identifier: Apache-2.0
//
// flopmeter run: runs a training command with the monitor attached.  Sets the environment and
// becomes the command.
#include "../option_flags.h"
#include "../python_package.h"

#include <flopmeter/core/text.h>
#include <flopmeter/core/world.h>
#include <flopmeter/monitor/options.h>
#include <flopmeter/runstore/run_layout.h>

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

namespace flopmeter {
namespace {

/// Exit codes of a shell for a command that it cannot start.
constexpr Exit not_found = 127;
constexpr Exit not_executable = 126;

Error wrong(std::string what) {
  return {ErrorCode::invalid_argument, std::move(what) + "; see `flopmeter run --help`"};
}

Result<std::vector<std::string>> command_of(std::vector<std::string> words) {
  if (words.empty()) return wrong("the command is missing: flopmeter run -- python train.py");
  if (words.front().starts_with('-'))
    return wrong("unknown option '" + printable(words.front()) + "'");
  return words;
}

/// Puts the folder of the start-up hook before the other entries of PYTHONPATH.
void put_first_in_python_path(const std::string& folder) {
  const char* before = std::getenv("PYTHONPATH");
  const bool any =
      before != nullptr && *before != '\0';  // an empty entry means the working directory
  ::setenv("PYTHONPATH", (any ? folder + ":" + before : folder).c_str(), 1);
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

/// Chosen once here, so that all processes of the command share it.  Absolute, because the command
/// may change its working directory.
std::string directory_of(const std::string& named) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::string chosen = choose_run_directory(named,
                                                  world_of_environment(environ).size,
                                                  environ,
                                                  std::chrono::duration<double>(now).count());
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(chosen, failed);
  return failed ? chosen : absolute.string();
}

Exit run(const OptionFlags& flags, const std::vector<std::string>& words) {
  const auto command = command_of(words);
  if (!command) return refuse(command.error());
  auto options = flags.options();
  if (!options) return refuse(options.error());
  for (const std::string& warning : (*options).warnings) notify(warning);
  if (const auto isolated = isolated_python(*command)) {
    notify("'" + printable(*isolated) + "' ignores sitecustomize: running without monitoring");
    return become(*command);
  }
  const auto package = python_package();
  if (!package) return refuse(package.error());
  (*options).directory = directory_of((*options).directory);
  ::setenv("FLOPMETER_CONFIG", options_text(*options).c_str(), 1);
  ::setenv("FLOPMETER_STARTED", (std::to_string(getpid()) + " " + (*options).directory).c_str(), 1);
  put_first_in_python_path(*package + "/launcher/startup");
  return become(*command);
}

std::function<Exit()> set_up(Arguments& app) {
  auto flags = std::make_shared<OptionFlags>();
  app.prefix_command();
  app.footer("The command follows the options: flopmeter run --dir logs/run -- python train.py");
  flags->add_to(app);
  return [flags, &app] { return run(*flags, app.remaining()); };
}

}  // namespace

extern constinit const Command command_run{
    .name = "run",
    .help = "Monitor a training command, without code changes",
    .order = 5,
    .set_up = set_up};

}  // namespace flopmeter
