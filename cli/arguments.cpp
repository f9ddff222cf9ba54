// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include "command.h"

#include <flopmeter/core/text.h>

#include <CLI/CLI.hpp>

#include <algorithm>

namespace flopmeter {
namespace {

struct Entry {
  CLI::App* app;
  Arguments* arguments;
  std::function<Exit()> run;
};

/// The message of a parse error on one line, with a pointer to --help.
Exit wrong_use(const CLI::App& app, const CLI::ParseError& error) {
  std::string what = error.what();
  std::replace(what.begin(), what.end(), '\n', ' ');
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::string words =
        what.substr(what.find(": ") + 2);  // CLI11 puts a sentence before them
    what = (words.starts_with('-') ? "unknown option '" : "unknown argument '") + words + "'";
  }
  std::string help = "flopmeter";
  for (const CLI::App* sub : app.get_subcommands()) help += " " + sub->get_name();
  return refuse({ErrorCode::invalid_argument, what + "; see `" + help + " --help`"});
}

/// An error if the first word is not a command; CLI11 reports only that one is required.
Result<void> check_command(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  std::vector<std::string_view> names;
  for (const Command* command : commands()) names.push_back(command->name);
  const std::string_view word = argv[1];
  if (std::find(names.begin(), names.end(), word) != names.end()) return {};
  return Error{ErrorCode::invalid_argument,
               "unknown command '" + printable(word) + "'" + did_you_mean(word, names) +
                   "; see `flopmeter --help`"};
}

}  // namespace

Argument* Argument::required() {
  option_->required();
  return this;
}

Argument* Argument::check(Check check) {
  option_->check(std::move(check));
  return this;
}

Argument* Argument::one_of(std::initializer_list<const char*> values) {
  option_->check(CLI::IsMember(std::vector<std::string>{values.begin(), values.end()}));
  return this;
}

Argument* Argument::excludes(Argument* other) {
  option_->excludes(other->option_);
  return this;
}

Argument* Argument::needs(Argument* other) {
  option_->needs(other->option_);
  return this;
}

Argument* Argument::capture_default_str() {
  option_->capture_default_str();
  return this;
}

Argument* Arguments::keep(CLI::Option* option) {
  return &arguments_.emplace_back(*option);
}

Argument* Arguments::add_option(const std::string& name,
                                std::string& value,
                                const std::string& help) {
  return keep(app_->add_option(name, value, help));
}
Argument* Arguments::add_option(const std::string& name, int& value, const std::string& help) {
  return keep(app_->add_option(name, value, help));
}
Argument* Arguments::add_option(const std::string& name,
                                std::int64_t& value,
                                const std::string& help) {
  return keep(app_->add_option(name, value, help));
}
Argument* Arguments::add_option(const std::string& name, double& value, const std::string& help) {
  return keep(app_->add_option(name, value, help));
}
Argument* Arguments::add_option(const std::string& name,
                                std::optional<double>& value,
                                const std::string& help) {
  return keep(app_->add_option(name, value, help));
}
Argument* Arguments::add_option(const std::string& name,
                                std::vector<std::string>& values,
                                const std::string& help) {
  CLI::Option* const option = app_->add_option(name, values, help);
  if (name.starts_with('-')) option->expected(1)->take_all();  // one value per use
  return keep(option);
}
Argument* Arguments::add_flag(const std::string& name, bool& value, const std::string& help) {
  return keep(app_->add_flag(name, value, help));
}

void Arguments::prefix_command() {
  app_->prefix_command();
}

void Arguments::no_help_flag() {
  app_->set_help_flag();
}

void Arguments::footer(const std::string& text) {
  app_->footer(text);
}

std::vector<std::string> Arguments::remaining() const {
  std::vector<std::string> words = app_->remaining();
  // A "--" after other words belongs to the other program.
  if (!words.empty() && !after_dashes_.empty()) words.emplace_back("--");
  words.insert(words.end(), after_dashes_.begin(), after_dashes_.end());
  return words;
}

int run_command_line(int argc, char** argv) {
  if (const auto known = check_command(argc, argv); !known) return refuse(known.error());
  CLI::App app{"Measure the MFU of training, exactly and continuously", "flopmeter"};
  app.set_version_flag("--version", FLOPMETER_VERSION);
  app.require_subcommand(1);
  std::vector<const Command*> sorted{commands().begin(), commands().end()};
  std::stable_sort(
      sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->order < b->order; });
  std::deque<Arguments> all;
  std::vector<Entry> entries;
  for (const Command* command : sorted) {
    CLI::App* sub = app.add_subcommand(std::string{command->name}, std::string{command->help});
    Arguments& arguments = all.emplace_back(*sub);
    entries.push_back({sub, &arguments, command->set_up(arguments)});
  }
  char** end = argv + argc;
  const auto chosen = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
    return argc > 1 && entry.app->get_name() == argv[1];
  });
  if (chosen != entries.end() && chosen->app->get_prefix_command()) {
    char** const dashes =
        std::find_if(argv, end, [](const char* word) { return std::string_view{word} == "--"; });
    if (dashes != end) chosen->arguments->after_dashes_.assign(dashes + 1, end);
    end = dashes;
  }
  try {
    app.parse(static_cast<int>(end - argv), argv);
    return chosen->run();
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : wrong_use(app, error);
  }
}

}  // namespace flopmeter
