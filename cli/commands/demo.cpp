// SPDX-License-Identifier: Apache-2.0
#include "../exec_helper.h"

#include <CLI/CLI.hpp>

#include <cerrno>

namespace flopmeter {
namespace {

/// The options are the other program's: all of them are passed on, and how this one was called.
std::function<Exit()> set_up(CLI::App& app) {
  app.prefix_command();
  app.set_help_flag();
  return [&app] {
    std::vector<std::string> arguments = app.remaining();
    arguments.insert(arguments.end(), {"--program", program_invocation_name});
    return exec_helper("flopmeter-demo", arguments);
  };
}

}  // namespace

extern constinit const Command command_demo{.name = "demo",
                                    .help = "Trains a small GPT for real, first badly, then well",
                                    .order = 0,
                                    .set_up = set_up};

}  // namespace flopmeter
