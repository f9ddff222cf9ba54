// SPDX-License-Identifier: Apache-2.0
#include "../exec_helper.h"

#include <cerrno>

namespace flopmeter {
namespace {

/// All options are passed to the other program, with the name of this one.
std::function<Exit()> set_up(Arguments& app) {
  app.prefix_command();
  app.no_help_flag();
  return [&app] {
    std::vector<std::string> arguments = app.remaining();
    arguments.insert(arguments.end(), {"--program", program_invocation_name});
    return exec_helper("flopmeter-demo", arguments);
  };
}

}  // namespace

extern constinit const Command command_demo{
    .name = "demo",
    .help = "Train a small GPT twice, misconfigured and tuned",
    .order = 0,
    .set_up = set_up};

}  // namespace flopmeter
