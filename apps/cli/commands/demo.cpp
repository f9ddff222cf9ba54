// SPDX-License-Identifier: Apache-2.0
#include "../exec_helper.h"

#include <CLI/CLI.hpp>

namespace flopmeter {
namespace {

/// The options are the other program's: all of them are passed on.
std::function<Exit()> set_up(CLI::App& app) {
  app.prefix_command();
  app.set_help_flag();
  return [&app] { return exec_helper("flopmeter-demo", app.remaining()); };
}

}  // namespace

extern const Command demo_plugin;
constinit const Command demo_plugin{.name = "demo",
                                    .help = "Trains a small GPT for real, first badly, then well",
                                    .order = 0,
                                    .set_up = set_up};

}  // namespace flopmeter
