// SPDX-License-Identifier: Apache-2.0
//
// Options from YAML, command lines and the environment, all through the list in options.cpp.
#include <flopmeter/core/text.h>
#include <flopmeter/monitor/options.h>

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace flopmeter {
namespace {

constexpr int deepest = 16;
constexpr std::string_view own_block = "flopmeter.";

/// The part of a dotted path that is ours, from the name of one of the known blocks on; empty for
/// somebody else's.
std::string_view our_part(std::string_view path) {
  if (path.starts_with("train.")) path.remove_prefix(6);
  if (path.starts_with(own_block) || path.starts_with("monitoring.") ||
      path.starts_with("monitor.freq."))
    return path;
  constexpr std::string_view system = "system.";
  if (!path.starts_with(system)) return {};
  const std::string_view key = path.substr(system.size());
  // FlagScale's block holds much else.
  return key.starts_with("perf_") || key.find("perf_monitor") != std::string_view::npos
             ? path
             : std::string_view{};
}

/// The row that a path of ours means, and all paths of the same block for a suggestion.
const OptionRow* find_row(std::string_view path, std::vector<std::string>& known) {
  const std::string_view block = path.substr(0, path.find('.') + 1);
  for (const OptionRow& row : option_rows()) {
    const std::string own = std::string{own_block}.append(row.name);
    if (path == own) return &row;
    if (block == own_block) known.push_back(own);
    std::string_view rest = row.yaml;
    while (!rest.empty()) {
      const std::string_view other = rest.substr(0, rest.find(' '));
      if (path == other) return &row;
      if (other.starts_with(block)) known.emplace_back(other);
      rest.remove_prefix(std::min(other.size() + 1, rest.size()));
    }
  }
  return nullptr;
}

/// The block of ours that a path outside them may have been meant for: the name it begins with is a
/// slip of the block's, and what follows would be ours in it.  Empty for somebody else's.
std::string_view meant_block(std::string_view path) {
  if (path.starts_with("train.")) path.remove_prefix(6);
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return {};
  constexpr std::array<std::string_view, 5> blocks = {
      "flopmeter", "monitoring", "monitor", "system", "train"};
  const std::string_view name = path.substr(0, dot);
  std::vector<std::string> known;
  if (name == "monitor" &&
      find_row(std::string{"monitoring"}.append(path.substr(dot)), known) != nullptr)
    return "monitoring";
  if (std::find(blocks.begin(), blocks.end(), name) != blocks.end()) return {};
  for (const std::string_view block : nearest(name, blocks)) {
    if (!our_part(std::string{block}.append(path.substr(dot))).empty()) return block;
  }
  return {};
}

Result<void> set_path(Options& options,
                      std::string_view path,
                      std::string_view value,
                      std::string_view where) {
  std::vector<std::string> known;
  const OptionRow* row = find_row(path, known);
  if (row == nullptr) {
    const std::vector<std::string_view> views{known.begin(), known.end()};
    return Error{ErrorCode::not_found,
                 std::string{where} + ": key '" + printable(path) + "' is not known" +
                     did_you_mean(path, views)};
  }
  const std::string_view must_be = row->parse(options, value);
  if (must_be.empty()) return {};
  return Error{ErrorCode::invalid_argument,
               std::string{where} + ": " + printable(path) + " is '" + printable(value) +
                   "' but must be " + std::string{must_be}};
}

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
  const std::string_view ours = our_part(path);
  if (ours.empty()) {
    const std::string_view block = meant_block(path);
    if (block.empty()) return {};
    return Error{ErrorCode::not_found,
                 where + ": key '" + printable(path) + "' is not known; did you mean the block '" +
                     std::string{block} + "'?"};
  }
  if (node.IsScalar()) return set_path(options, ours, node.Scalar(), where);
  if (node.IsSequence()) {
    for (const auto& item : node) {
      if (!item.IsScalar())
        return Error{ErrorCode::parse_error,
                     where + ": " + printable(ours) + " must be a list of words"};
      if (const auto done = set_path(options, ours, item.Scalar(), where); !done) return done;
    }
    return {};
  }
  return Error{ErrorCode::parse_error, where + ": " + printable(ours) + " has no value"};
}

/// Flag and value from "--flag=value" or "--flag value".
struct Flag {
  std::string_view name;
  std::optional<std::string_view> value;
};

Flag split(std::string_view argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string_view::npos) return {argument, std::nullopt};
  return {argument.substr(0, equals), argument.substr(equals + 1)};
}

std::string spelled(std::string_view flag) {
  std::string name{flag};
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

bool is_ours(std::string_view flag) {
  return flag.starts_with("--perf-") || flag.starts_with("--no-perf-") ||
         flag.find("perf-monitor") != std::string_view::npos;
}

Error unknown_flag(std::string_view flag) {
  std::vector<std::string> known;
  for (const OptionRow& row : option_rows()) {
    if (row.flag.empty()) continue;
    known.emplace_back(row.flag);
    if (row.is_switch) known.push_back("--no-" + std::string{row.flag.substr(2)});
  }
  const std::vector<std::string_view> views{known.begin(), known.end()};
  return {ErrorCode::not_found,
          "flag '" + printable(flag) + "' is not known" + did_you_mean(flag, views)};
}

constexpr std::string_view variable_prefix = "FLOPMETER_";

/// "FLOPMETER_LOG_INTERVAL".
std::string variable_of(const OptionRow& row) {
  std::string name{variable_prefix};
  for (const char c : row.name)
    name.push_back(c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
  return name;
}

/// Variables that the project's programs and tests read, beside the options.
bool is_of_others(std::string_view name) {
  constexpr std::array<std::string_view, 7> others = {
      "BIN", "EXAMPLE", "LONG", "OFFLINE", "PYTHON", "RUN_", "UPDATE_GOLDEN"};
  name.remove_prefix(variable_prefix.size());
  return std::any_of(others.begin(), others.end(), [name](std::string_view other) {
    return other.ends_with('_') ? name.starts_with(other) : name == other;
  });
}

/// Takes the flag at `i`; false where it is not one of ours.
Result<bool> take_flag(Options& options,
                       std::span<const std::string> arguments,
                       std::size_t& i,
                       bool& shared) {
  const Flag flag = split(arguments[i]);
  const std::string name = spelled(flag.name);
  for (const OptionRow& row : option_rows()) {
    if (row.flag.empty()) continue;
    const bool negated = row.is_switch && name == "--no-" + std::string{row.flag.substr(2)};
    if (name != row.flag && !negated) continue;
    shared = row.shared;
    std::string value;
    if (flag.value && !negated) {
      value = *flag.value;
    } else if (row.is_switch) {
      value = negated ? "false" : "true";
    } else if (i + 1 < arguments.size() && !arguments[i + 1].starts_with("--")) {
      value = arguments[++i];
    } else {
      return Error{ErrorCode::invalid_argument, "flag " + name + " needs a value"};
    }
    const std::string_view must_be = row.parse(options, value);
    if (must_be.empty()) return true;
    return Error{
        ErrorCode::invalid_argument,
        "flag " + name + " is '" + printable(value) + "' but must be " + std::string{must_be}};
  }
  if (is_ours(name)) return unknown_flag(name);
  return false;
}

}  // namespace

Result<void> apply_yaml(Options& options, std::string_view text, std::string_view file) {
  try {
    Options changed = options;
    for (const YAML::Node& document : YAML::LoadAll(std::string{text})) {
      if (const auto done = walk(changed, document, "", file, 0); !done) return done;
    }
    options = std::move(changed);
    return {};
  } catch (const YAML::Exception& error) {
    return Error{ErrorCode::parse_error,
                 std::string{file} + " line " + std::to_string(error.mark.line + 1) + ": " +
                     printable(error.msg)};
  }
}

Result<void> apply_yaml_file(Options& options, const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return Error{ErrorCode::io_error, "cannot read " + printable(path)};
  return apply_yaml(options, text.str(), path);
}

Result<std::vector<std::string>> apply_arguments(Options& options,
                                                 std::span<const std::string> arguments) {
  std::vector<std::string> rest;
  Options changed = options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::size_t first = i;
    bool shared = false;
    if (argument == "--") {
      rest.insert(rest.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
      break;
    }
    if (argument.starts_with("--")) {
      const auto taken = take_flag(changed, arguments, i, shared);
      if (!taken) return taken.error();
      if (*taken && !shared) continue;
    } else if (const Flag word = split(argument); word.value) {
      std::string_view path = word.name;
      path.remove_prefix(
          std::min(path.find_first_not_of('+'), path.size()));  // Hydra's "+key=value" adds a key
      if (const std::string_view ours = our_part(path); !ours.empty()) {
        if (const auto done = set_path(changed, ours, *word.value, "command line"); !done)
          return done.error();
        continue;
      }
    }
    rest.insert(rest.end(),
                arguments.begin() + static_cast<std::ptrdiff_t>(first),
                arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  options = std::move(changed);
  return rest;
}

Result<void> apply_environment(Options& options, const char* const* environment) {
  const auto rows = option_rows();
  std::vector<std::string> names;
  for (const OptionRow& row : rows) names.push_back(variable_of(row));
  Options changed = options;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const Flag variable = split(*environment);
    if (!variable.value || !variable.name.starts_with(variable_prefix)) continue;
    const auto at = std::find(names.begin(), names.end(), variable.name);
    if (at == names.end()) {
      if (is_of_others(variable.name)) continue;
      const std::vector<std::string_view> views{names.begin(), names.end()};
      changed.warnings.push_back("environment: " + printable(variable.name) + " is not known" +
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
