// SPDX-License-Identifier: Apache-2.0
#include "command.h"

#include <flopmeter/core/files.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>

namespace flopmeter {

void notify(std::string_view text) {
  const std::string line = "flopmeter: " + printable(text) + "\n";
  std::fputs(line.c_str(), stderr);
}

Exit refuse(const Error& error) {
  std::string text = error.message;
  if (!error.parameter.empty()) {
    std::string flag = error.parameter == "directory" ? "dir" : error.parameter;
    std::replace(flag.begin(), flag.end(), '_', '-');
    text = "--" + flag + " " + text;
  }
  notify(text);
  const bool wrong_use =
      error.code == ErrorCode::invalid_argument || error.code == ErrorCode::parse_error;
  return wrong_use ? 2 : 1;
}

Exit print(std::string_view text) {
  std::signal(SIGPIPE, SIG_IGN);  // not earlier: a command that is run would inherit it
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written || errno == EPIPE) return 0;  // a reader such as `head` has all it wants
  return refuse({ErrorCode::io_error,
                 std::string{"cannot write to standard output: "} + std::strerror(errno)});
}

Exit print_json(const std::function<void(JsonWriter&)>& write) {
  std::string text;
  JsonWriter json{text, 2};
  write(json);
  return print(text + "\n");
}

std::string check_positive_integer(const std::string& text) {
  const auto value = parse_int(text);
  return value && *value > 0 ? "" : "'" + printable(text) + "' is not a positive integer";
}

std::string check_positive_number(const std::string& text) {
  const auto value = parse_double(text);
  return value && *value > 0 && *value < 1e300
             ? ""
             : "'" + printable(text) + "' is not a positive number";
}

std::string check_not_negative(const std::string& text) {
  const auto value = parse_int(text);
  return value && *value >= 0 ? "" : "'" + printable(text) + "' is not an integer from 0 on";
}

std::string check_not_empty(const std::string& text) {
  return text.empty() ? "must not be empty" : "";
}

Result<std::string> read_text(const std::string& path) {
  constexpr std::size_t most = 64U << 20U;
  if (path != "-") return read_file(path, most);
  std::string text;
  std::array<char, 65536> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), stdin)) {
    text.append(buffer.data(), got);
    if (text.size() > most)
      return Error{ErrorCode::invalid_argument, "standard input is larger than 64 MiB"};
  }
  return text;
}

}  // namespace flopmeter
