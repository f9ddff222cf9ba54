// SPDX-License-Identifier: Apache-2.0
//
// JsonWriter: appends JSON to a string.  Integers of any size are exact, unknown values and
// values without a JSON number (NaN, infinity) are null, text is escaped valid UTF-8, and the
// output is independent of the locale.
#pragma once

#include <flopmeter/core/units.h>

#include <concepts>
#include <optional>
#include <string>
#include <string_view>

namespace flopmeter {

/// Not thread-safe; one writer per document.
class JsonWriter {
 public:
  /// `indent` spaces per level; 0 writes everything on one line.
  explicit JsonWriter(std::string& out, int indent = 0) : out_(out), indent_(indent) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view{text}); }
  JsonWriter& value(bool flag);
  JsonWriter& value(double number);
  JsonWriter& value(WideInt number);
  JsonWriter& value(Flops flops) { return value(flops.value); }
  JsonWriter& value(Bytes bytes) { return value(bytes.value); }
  JsonWriter& value(Seconds seconds) { return value(seconds.value); }
  JsonWriter& value(FlopsPerSecond rate) { return value(rate.value); }
  JsonWriter& value(std::integral auto number) { return value(static_cast<WideInt>(number)); }
  template <class T>
  JsonWriter& value(const std::optional<T>& maybe) {
    return maybe ? value(*maybe) : null();
  }
  JsonWriter& null();
  /// Text that is JSON already.
  JsonWriter& raw(std::string_view json);

  template <class T>
  JsonWriter& field(std::string_view name, const T& content) {
    return key(name).value(content);
  }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();
  void new_line();

  std::string& out_;
  int indent_;
  int depth_ = 0;
  bool first_ = true;
  bool after_key_ = false;
};

/// `text` as a JSON string with its quotes.
void append_json_string(std::string& out, std::string_view text);

}  // namespace flopmeter
