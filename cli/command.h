// SPDX-License-Identifier: Apache-2.0
//
// What a command of the program is.  To add one, add a file to cli/commands.
#pragma once

#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/result.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace flopmeter {

/// 0 done, 1 failed, 2 wrong use.
using Exit = int;

struct Command {
  std::string_view name;
  std::string_view help;
  int order = 0;  ///< in --help, smallest first
  /// Adds the command's options and returns what runs it.
  std::function<Exit()> (*set_up)(CLI::App& app) = nullptr;
};

std::span<const Command* const> commands();

/// The words behind "--", which CLI11 does not see: another program's command line.
std::vector<std::string>& words_behind();

/// One line on standard error, and the exit code that goes with it.
Exit refuse(const Error& error);

/// One line on standard error.
void say(std::string_view text);

/// Writes to standard output.
Exit print(std::string_view text);

/// Prints what `write` makes of a JSON document.
Exit print_json(const std::function<void(JsonWriter&)>& write);

/// What an integer, number or choice on the command line must be; for CLI::Option::check().
std::string check_positive_integer(const std::string& text);
std::string check_positive_number(const std::string& text);
std::string check_not_empty(const std::string& text);

/// A whole file, "-" for standard input; at most 64 MiB.
Result<std::string> read_text(const std::string& path);

}  // namespace flopmeter
