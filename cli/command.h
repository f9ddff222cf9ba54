// SPDX-License-Identifier: Apache-2.0
//
// A command of the program.  To add one, add a file to cli/commands.
#pragma once

#include "arguments.h"

#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/result.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace flopmeter {

/// 0: success; 1: failure, also of what an argument names, such as a missing file; 2: wrong usage.
using Exit = int;

struct Command {
  std::string_view name;
  std::string_view help;
  int order = 0;  ///< in --help, smallest first
  /// Adds the command's arguments and returns the function that runs it.
  std::function<Exit()> (*set_up)(Arguments& app) = nullptr;
};

std::span<const Command* const> commands();

/// Prints the error to standard error, on one line, and returns the exit code.
Exit refuse(const Error& error);

/// Prints one line to standard error.
void notify(std::string_view text);

/// Writes to standard output.
Exit print(std::string_view text);

/// Prints the JSON document that `write` produces.
Exit print_json(const std::function<void(JsonWriter&)>& write);

/// Checks of a value, for Argument::check().
std::string check_positive_integer(const std::string& text);
std::string check_positive_number(const std::string& text);
std::string check_not_negative(const std::string& text);
std::string check_not_empty(const std::string& text);

/// Reads a file, or standard input for "-"; at most 64 MiB.
Result<std::string> read_text(const std::string& path);

}  // namespace flopmeter
