// SPDX-License-Identifier: Apache-2.0
//
// Command-line arguments of a command.  A thin front of CLI11, whose header takes seconds to
// compile in every file that includes it; names and meaning are CLI11's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace flopmeter {

/// One option, flag, or positional argument.
class Argument {
 public:
  /// Returns an empty text if the argument is valid, else what is wrong with it.
  using Check = std::function<std::string(const std::string& text)>;

  explicit Argument(CLI::Option& option) : option_(&option) {}

  Argument* required();
  Argument* check(Check check);
  Argument* one_of(std::initializer_list<const char*> values);
  Argument* excludes(Argument* other);
  Argument* needs(Argument* other);
  Argument* capture_default_str();  ///< shows the default in --help

 private:
  CLI::Option* option_;
};

/// The arguments of one command.  Values are set when the command line is parsed.
class Arguments {
 public:
  explicit Arguments(CLI::App& app) : app_(&app) {}

  Argument* add_option(const std::string& name, std::string& value, const std::string& help);
  Argument* add_option(const std::string& name, int& value, const std::string& help);
  Argument* add_option(const std::string& name, std::int64_t& value, const std::string& help);
  Argument* add_option(const std::string& name, double& value, const std::string& help);
  Argument* add_option(const std::string& name,
                       std::optional<double>& value,
                       const std::string& help);
  /// A repeatable option, or all positional words.
  Argument* add_option(const std::string& name,
                       std::vector<std::string>& values,
                       const std::string& help);
  Argument* add_flag(const std::string& name, bool& value, const std::string& help);

  /// All words from the first that is not an option on belong to another program.
  void prefix_command();
  void no_help_flag();  ///< --help belongs to the other program too
  void footer(const std::string& text);

  /// The other program's words.
  [[nodiscard]] std::vector<std::string> remaining() const;

 private:
  friend int run_command_line(int argc, char** argv);

  Argument* keep(CLI::Option* option);

  CLI::App* app_;
  std::deque<Argument> arguments_;
  std::vector<std::string> after_dashes_;  ///< words after "--", which CLI11 does not see
};

/// Parses the command line and runs the command; returns the exit code.
int run_command_line(int argc, char** argv);

}  // namespace flopmeter
