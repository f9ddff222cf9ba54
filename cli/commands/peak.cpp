// SPDX-License-Identifier: Apache-2.0
#include "../exec_helper.h"

namespace flopmeter {
namespace {

/// All options are passed to the other program.
std::function<Exit()> set_up(Arguments& app) {
  app.prefix_command();
  app.no_help_flag();
  return [&app] { return exec_helper("flopmeter-peak", app.remaining()); };
}

}  // namespace

extern constinit const Command command_peak{
    .name = "peak",
    .help = "Measure the matmul rate of this machine per dtype",
    .order = 11,
    .set_up = set_up};

}  // namespace flopmeter
