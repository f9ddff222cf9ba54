// SPDX-License-Identifier: Apache-2.0
#include "command.h"

#include <flopmeter/core/text.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace {

using flopmeter::Command;

/// The message of a parse error on one line, with the way to more.
int wrong_use(const CLI::App& app, const CLI::ParseError& error) {
  std::string what = error.what();
  std::replace(what.begin(), what.end(), '\n', ' ');
  std::string help = "flopmeter";
  for (const CLI::App* sub : app.get_subcommands()) help += " " + sub->get_name();
  return flopmeter::refuse(
      {flopmeter::ErrorCode::invalid_argument, what + "; see '" + help + " --help'"});
}

/// An error if the first word is no command; CLI11 would only say that one is required.
flopmeter::Result<void> check_command(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  std::vector<std::string_view> names;
  for (const Command* command : flopmeter::commands()) names.push_back(command->name);
  const std::string_view word = argv[1];
  if (std::find(names.begin(), names.end(), word) != names.end()) return {};
  return flopmeter::Error{flopmeter::ErrorCode::invalid_argument,
                          "no command is called '" + std::string{word} + "'" +
                              flopmeter::did_you_mean(word, names) + "; see 'flopmeter --help'"};
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): what is outside the try fails for want of memory only
int main(int argc, char** argv) {
  if (const auto known = check_command(argc, argv); !known) return flopmeter::refuse(known.error());
  CLI::App app{"How much of the hardware does useful work: MFU, exactly, all the time",
               "flopmeter"};
  app.set_version_flag("--version", FLOPMETER_VERSION);
  app.require_subcommand(1);
  std::vector<const Command*> commands{flopmeter::commands().begin(), flopmeter::commands().end()};
  std::stable_sort(
      commands.begin(), commands.end(), [](auto* a, auto* b) { return a->order < b->order; });
  std::vector<std::pair<CLI::App*, std::function<flopmeter::Exit()>>> runs;
  for (const Command* command : commands) {
    CLI::App* sub = app.add_subcommand(std::string{command->name}, std::string{command->help});
    runs.emplace_back(sub, command->set_up(*sub));
  }
  const bool passes_on = std::any_of(runs.begin(), runs.end(), [&](const auto& each) {
    return argc > 1 && each.first->get_name() == argv[1] && each.first->get_prefix_command();
  });
  char** const end = argv + argc;
  char** const dashes = std::find_if(
      argv, end, [&](const char* word) { return passes_on && std::string_view{word} == "--"; });
  if (dashes != end) flopmeter::words_behind().assign(dashes + 1, end);
  try {
    app.parse(static_cast<int>(dashes - argv), argv);
    for (const auto& [sub, run] : runs) {
      if (sub->parsed()) return run();
    }
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : wrong_use(app, error);
  } catch (const std::exception& error) {
    return flopmeter::refuse({flopmeter::ErrorCode::io_error, error.what()});
  }
  return 2;
}
