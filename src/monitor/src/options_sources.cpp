// SPDX-License-Identifier: Apache-2.0
//
// Options from YAML and the environment.
#include "option_paths.h"

#include <flopmeter/core/files.h>
#include <flopmeter/core/text.h>
#include <flopmeter/monitor/options.h>

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace flopmeter {
namespace {

constexpr int deepest = 16;

// NOLINTNEXTLINE(misc-no-recursion): bounded by `deepest`
Result<void> walk(Options& options,
                  const YAML::Node& node,
                  const std::string& path,
                  std::string_view file,
                  int depth) {
  if (depth > deepest)
    return Error{ErrorCode::parse_error, std::string{file} + ": " + path + " is nested too deep"};
  if (node.IsMap()) {
    for (const auto& item : node) {
      if (!item.first.IsScalar()) continue;
      const std::string below =
          path.empty() ? item.first.Scalar() : path + "." + item.first.Scalar();
      if (const auto done = walk(options, item.second, below, file, depth + 1); !done) return done;
    }
    return {};
  }
  const std::string where = std::string{file} + " line " + std::to_string(node.Mark().line + 1);
  const std::string_view known = option_path(path);
  if (known.empty()) {
    const std::string_view block = misspelled_block(path);
    if (block.empty()) return {};
    return Error{ErrorCode::invalid_argument,
                 where + ": unknown key '" + printable(path) + "'; did you mean the block '" +
                     std::string{block} + "'?"};
  }
  if (node.IsScalar()) return set_path(options, known, node.Scalar(), where);
  if (node.IsSequence()) {
    for (const auto& item : node) {
      if (!item.IsScalar())
        return Error{ErrorCode::parse_error,
                     where + ": " + printable(known) + " must be a list of words"};
      if (const auto done = set_path(options, known, item.Scalar(), where); !done) return done;
    }
    return {};
  }
  return Error{ErrorCode::parse_error, where + ": " + printable(known) + " has no value"};
}

constexpr std::string_view variable_prefix = "FLOPMETER_";
constexpr std::string_view config_variable = "FLOPMETER_CONFIG";

/// "FLOPMETER_LOG_INTERVAL".
std::string variable_of(const OptionRow& row) {
  std::string name{variable_prefix};
  for (const char c : row.name)
    name.push_back(c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
  return name;
}

/// Variables of the project's programs and tests that are not options.
bool is_not_an_option(std::string_view name) {
  constexpr std::array<std::string_view, 7> others = {
      "BIN", "EXAMPLE", "LANG", "LONG", "OFFLINE", "PYTHON", "UPDATE_GOLDEN"};
  name.remove_prefix(variable_prefix.size());
  return std::find(others.begin(), others.end(), name) != others.end();
}

}  // namespace

Result<void> apply_yaml(Options& options, std::string_view text, std::string_view file) {
  try {
    Options changed = options;
    // LoadAll() never ends on some inputs, such as a single comma.
    const YAML::Node document = YAML::Load(std::string{text});
    if (!document.IsMap() && !document.IsNull())
      return Error{ErrorCode::parse_error,
                   std::string{file} + ": expected options as 'name: value' lines"};
    if (const auto done = walk(changed, document, "", file, 0); !done) return done;
    options = std::move(changed);
    return {};
  } catch (const YAML::Exception& error) {
    return Error{ErrorCode::parse_error,
                 std::string{file} + " line " + std::to_string(error.mark.line + 1) + ": " +
                     printable(error.msg)};
  }
}

Result<void> apply_yaml_file(Options& options, const std::string& path) {
  constexpr std::size_t most = 1U << 20U;
  const auto text = read_file(path, most);
  if (!text) return text.error();
  return apply_yaml(options, *text, path);
}

Result<void> apply_environment(Options& options, const char* const* environment) {
  for (const char* const* each = environment; each != nullptr && *each != nullptr; ++each) {
    const Assignment variable = split(*each);
    if (variable.name == config_variable && variable.value)
      return apply_yaml(options, *variable.value, config_variable);
  }
  const auto rows = option_rows();
  std::vector<std::string> names;
  for (const OptionRow& row : rows) names.push_back(variable_of(row));
  Options changed = options;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const Assignment variable = split(*environment);
    if (!variable.value || !variable.name.starts_with(variable_prefix)) continue;
    const auto at = std::find(names.begin(), names.end(), variable.name);
    if (at == names.end()) {
      if (is_not_an_option(variable.name)) continue;
      const std::vector<std::string_view> views{names.begin(), names.end()};
      changed.warnings.push_back("environment: unknown variable " + printable(variable.name) +
                                 did_you_mean(variable.name, views));
      continue;
    }
    const std::string_view must_be =
        rows[static_cast<std::size_t>(at - names.begin())].parse(changed, *variable.value);
    if (must_be.empty()) continue;
    return Error{ErrorCode::invalid_argument,
                 "environment: " + *at + " is '" + printable(*variable.value) + "' but must be " +
                     std::string{must_be}};
  }
  options = std::move(changed);
  return {};
}

}  // namespace flopmeter
