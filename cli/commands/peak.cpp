// SPDX-License-Identifier: Apache-2.0
#include "../exec_helper.h"

#include <CLI/CLI.hpp>

namespace flopmeter {
namespace {

/// The options are the other program's: all of them are passed on.
std::function<Exit()> set_up(CLI::App& app) {
  app.prefix_command();
  app.set_help_flag();
  return [&app] { return exec_helper("flopmeter-peak", app.remaining()); };
}

}  // namespace

extern constinit const Command command_peak{
    .name = "peak",
    .help = "The matmul rate that this machine reaches, for each dtype",
    .order = 11,
    .set_up = set_up};

}  // namespace flopmeter
