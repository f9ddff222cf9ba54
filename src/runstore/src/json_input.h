// SPDX-License-Identifier: Apache-2.0
//
// Reads values of JSON from a file that may be damaged: a missing value or one of another type is
// empty.
#pragma once

#include <flopmeter/runstore/input_limits.h>

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>

namespace flopmeter {

using JsonElement = simdjson::dom::element;

/// Parses up to the depth that InputLimits allows.
class JsonInput {
 public:
  /// The object that `text` spells; valid until the next call.
  std::optional<JsonElement> object(std::string_view text) {
    JsonElement element;
    if (parser_.allocate(text.size() + 1, InputLimits::depth) != simdjson::SUCCESS ||
        parser_.parse(text.data(), text.size()).get(element) != simdjson::SUCCESS ||
        !element.is_object())
      return std::nullopt;
    return element;
  }

 private:
  simdjson::dom::parser parser_;
};

template <class T>
std::optional<T> json_get(const JsonElement& object, std::string_view key) {
  T value{};
  if (object[key].get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

inline std::string json_text(const JsonElement& object, std::string_view key) {
  return std::string{json_get<std::string_view>(object, key).value_or("")};
}

/// An integer from 1 on.
inline std::optional<int> json_count(const JsonElement& object, std::string_view key) {
  const auto value = json_get<std::int64_t>(object, key);
  if (!value || *value < 1 || *value > InputLimits::highest_count) return std::nullopt;
  return static_cast<int>(*value);
}

/// A number above 0.
inline std::optional<double> json_positive(const JsonElement& object, std::string_view key) {
  const auto value = json_get<double>(object, key);
  return value && *value > 0 ? value : std::nullopt;
}

}  // namespace flopmeter
