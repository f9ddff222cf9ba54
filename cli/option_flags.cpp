// SPDX-License-Identifier: Apache-2.0
#include "option_flags.h"

#include <flopmeter/monitor/options.h>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace flopmeter {
namespace {

std::string flag_of(std::string_view name) {
  std::string flag{name == "directory" ? "dir" : name};
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string variable_of(std::string_view name) {
  std::string variable = "FLOPMETER_";
  for (const char c : name)
    variable.push_back(c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
  return variable;
}

}  // namespace

void OptionFlags::add_to(CLI::App& app) {
  const Options defaults;
  for (const OptionRow& row : option_rows()) {
    if (row.name == "enabled") continue;  // who wants none runs the command alone
    std::string& value = given_[std::string{row.name}];
    const std::string flag = flag_of(row.name);
    std::string help{row.help};
    if (row.is_switch) {
      const bool on = row.show(defaults) == "true";
      app.add_flag_callback(
          on ? "--no-" + flag : "--" + flag,
          [&value, on] { value = on ? "false" : "true"; },
          (on ? "not: " : "") + help);
      continue;
    }
    const std::string otherwise = row.show(defaults);
    if (!otherwise.empty()) help += " (" + otherwise + ")";
    app.add_option("--" + flag, value, help);
  }
  app.add_option("--config", config_, "more options from a YAML file");
}

Result<std::vector<std::pair<std::string, std::string>>> OptionFlags::environment() const {
  Options options;
  if (const auto applied = apply_environment(options, environ); !applied) return applied.error();
  if (!config_.empty()) {
    if (const auto applied = apply_yaml_file(options, config_); !applied) return applied.error();
  }
  for (const auto& [name, value] : given_) {
    if (value.empty()) continue;
    if (const auto done = set_option(options, name, value); !done) return done.error();
  }
  std::error_code ignored;
  const auto directory = std::filesystem::absolute(options.directory, ignored);
  if (!ignored) options.directory = directory;
  const Options defaults;
  std::vector<std::pair<std::string, std::string>> environment;
  for (const OptionRow& row : option_rows()) {
    const std::string value = row.show(options);
    if (value != row.show(defaults)) environment.emplace_back(variable_of(row.name), value);
  }
  return environment;
}

}  // namespace flopmeter
