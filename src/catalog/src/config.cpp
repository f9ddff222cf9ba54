// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/catalog/config.h>
#include <flopmeter/core/text.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>

namespace flopmeter {
namespace {

using Json = nlohmann::json;

constexpr std::size_t largest_text = 16U << 20U;
constexpr std::int64_t largest_size = std::int64_t{1} << 40U;

const Json& json(const void* node) {
  return *static_cast<const Json*>(node);
}

/// A value for a message: short and printable.
std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return printable(text);
}

/// Nesting depth of a text, checked before the recursive parser.
bool nests_too_deep(std::string_view text) {
  int depth = 0;
  for (const char c : text) {
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth > 100) return true;
  }
  return false;
}

/// Text without the numbers that Python writes although JSON has none: they become null.
std::string with_json_numbers(std::string_view text) {
  static constexpr auto words = std::to_array<std::string_view>({"-Infinity", "Infinity", "NaN"});
  std::string plain;
  plain.reserve(text.size());
  bool quoted = false;
  while (!text.empty()) {
    const auto word = std::find_if(words.begin(), words.end(), [&](std::string_view each) {
      return !quoted && text.starts_with(each);
    });
    const std::size_t width = word != words.end() ? word->size() : 1;
    if (word != words.end()) {
      plain += "null";
    } else if (quoted && text.front() == '\\' && text.size() > 1) {
      plain += text.front();
      text.remove_prefix(1);
      plain += text.front();
    } else {
      if (text.front() == '"') quoted = !quoted;
      plain += text.front();
    }
    text.remove_prefix(width);
  }
  return plain;
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): documented as nothrow by the library
struct Config::State {
  Json root;
  std::string origin;
  std::optional<Error> error;
};

Result<Config> Config::parse(std::string_view text, std::string_view origin) {
  const std::string name = printable(origin);
  const auto refuse = [&](const std::string& why) {
    return Error{ErrorCode::parse_error, name + ": " + why + "; give a model's config.json"};
  };
  if (text.size() > largest_text) return refuse("larger than 16 MiB, so no model configuration");
  if (nests_too_deep(text)) return refuse("nested more than 100 deep, so no model configuration");
  Json root;
  try {
    root = Json::parse(with_json_numbers(text));
  } catch (const Json::exception& e) {
    const auto* parse_error = dynamic_cast<const Json::parse_error*>(&e);
    return refuse("not valid JSON" +
                  (parse_error != nullptr ? " at byte " + std::to_string(parse_error->byte) : ""));
  }
  if (!root.is_object()) return refuse("not a JSON object");
  auto state = std::make_shared<State>();
  state->root = std::move(root);
  state->origin = name;
  const void* node = &state->root;
  return Config{std::move(state), node, ""};
}

void Config::fail(std::string_view what) const {
  if (!state_->error)
    state_->error = Error{ErrorCode::parse_error, state_->origin + ": " + std::string{what}};
}

Result<void> Config::status() const {
  if (state_->error) return *state_->error;
  return {};
}

const void* Config::find(Keys keys) const {
  if (node_ == nullptr) return nullptr;
  for (const auto key : keys) {
    const auto at = json(node_).find(key);
    if (at != json(node_).end() && !at->is_null()) return &*at;
  }
  return nullptr;
}

std::int64_t Config::integer(Keys keys, const void* value, std::int64_t least) const {
  const Json& number = json(value);
  if (number.is_number_integer() && number >= least && number <= largest_size)
    return number.get<std::int64_t>();
  fail("key '" + path_ + std::string{*keys.begin()} + "' is " + shown(number) +
       ", expected an integer from " + std::to_string(least) + " to 2^40");
  return 1;
}

std::int64_t Config::size(Keys keys) const {
  if (const void* value = find(keys)) return integer(keys, value, 1);
  fail("key '" + path_ + std::string{*keys.begin()} + "' is missing");
  return 1;
}

std::int64_t Config::size_or(Keys keys, std::int64_t otherwise) const {
  const void* value = find(keys);
  return value == nullptr ? otherwise : integer(keys, value, 1);
}

std::int64_t Config::count_or(Keys keys, std::int64_t otherwise) const {
  const void* value = find(keys);
  return value == nullptr ? otherwise : integer(keys, value, 0);
}

bool Config::flag_or(Keys keys, bool otherwise) const {
  const void* value = find(keys);
  if (value == nullptr) return otherwise;
  if (json(value).is_boolean()) return json(value).get<bool>();
  fail("key '" + path_ + std::string{*keys.begin()} + "' is " + shown(json(value)) +
       ", expected true or false");
  return otherwise;
}

double Config::number_or(Keys keys, double otherwise) const {
  const void* value = find(keys);
  if (value == nullptr) return otherwise;
  if (json(value).is_number()) return json(value).get<double>();
  fail("key '" + path_ + std::string{*keys.begin()} + "' is " + shown(json(value)) +
       ", expected a number");
  return otherwise;
}

std::string Config::text_or(Keys keys, std::string_view otherwise) const {
  const void* value = find(keys);
  if (value == nullptr) return std::string{otherwise};
  if (json(value).is_string()) return json(value).get<std::string>();
  fail("key '" + path_ + std::string{*keys.begin()} + "' is " + shown(json(value)) +
       ", expected text");
  return std::string{otherwise};
}

std::vector<std::int64_t> Config::counts(Keys keys) const {
  std::vector<std::int64_t> list;
  const void* value = find(keys);
  if (value == nullptr) return list;
  if (!json(value).is_array()) {
    fail("key '" + path_ + std::string{*keys.begin()} + "' is " + shown(json(value)) +
         ", expected a list of integers");
    return list;
  }
  for (const Json& item : json(value)) list.push_back(integer(keys, &item, 0));
  return list;
}

std::vector<std::int64_t> Config::sizes(Keys keys) const {
  std::vector<std::int64_t> list;
  const void* value = find(keys);
  if (value == nullptr) return list;
  if (!json(value).is_array()) return {integer(keys, value, 1)};
  for (const Json& item : json(value)) list.push_back(integer(keys, &item, 1));
  return list;
}

std::vector<std::string> Config::texts(Keys keys) const {
  std::vector<std::string> list;
  const void* value = find(keys);
  if (value == nullptr) return list;
  if (json(value).is_array()) {
    for (const Json& item : json(value)) {
      if (item.is_string()) list.push_back(item.get<std::string>());
    }
  }
  if (list.size() != json(value).size()) {
    fail("key '" + path_ + std::string{*keys.begin()} + "' is " + shown(json(value)) +
         ", expected a list of texts");
  }
  return list;
}

bool Config::has(std::string_view key) const {
  return find({key}) != nullptr;
}

bool Config::is_null(std::string_view key) const {
  if (node_ == nullptr) return false;
  const auto at = json(node_).find(key);
  return at != json(node_).end() && at->is_null();
}

Config Config::child(std::string_view key) const {
  const void* value = find({key});
  const std::string path = path_ + std::string{key} + ".";
  if (value != nullptr && json(value).is_object()) return {state_, value, path};
  if (value != nullptr)
    fail("key '" + path_ + std::string{key} + "' is " + shown(json(value)) +
         ", expected an object");
  return {state_, nullptr, path};
}

}  // namespace flopmeter
