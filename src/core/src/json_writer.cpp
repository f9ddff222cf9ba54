// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <cmath>

namespace flopmeter {

namespace {

/// `\uXXXX` of a character of up to three bytes.
void append_escape(std::string& out, std::string_view character) {
  constexpr std::string_view hex = "0123456789abcdef";
  const auto bits = [&](std::size_t i, unsigned mask) {
    return static_cast<unsigned char>(character[i]) & mask;
  };
  const unsigned code = character.size() == 1 ? bits(0, 0x7fU)
                        : character.size() == 2
                            ? (bits(0, 0x1fU) << 6U) | bits(1, 0x3fU)
                            : (bits(0, 0x0fU) << 12U) | (bits(1, 0x3fU) << 6U) | bits(2, 0x3fU);
  out.append("\\u");
  for (const unsigned shift : {12U, 8U, 4U, 0U}) out.push_back(hex[(code >> shift) & 15U]);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  const std::string valid = valid_utf8(text);
  for (std::string_view rest = valid; !rest.empty();) {
    const char c = rest.front();
    // '<': the text may land inside an HTML script.
    const std::size_t escaped = c == '<' ? 1 : control_length(rest);
    if (c == '\n') {
      out.append("\\n");
    } else if (escaped != 0) {
      append_escape(out, rest.substr(0, escaped));
    } else {
      if (c == '"' || c == '\\') out.push_back('\\');
      out.push_back(c);
    }
    rest.remove_prefix(std::max<std::size_t>(escaped, 1));
  }
  out.push_back('"');
}

void JsonWriter::new_line() {
  if (indent_ == 0) return;
  out_.push_back('\n');
  out_.append(static_cast<std::size_t>(indent_) * static_cast<std::size_t>(depth_), ' ');
}

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (depth_ == 0) return;
  if (!first_) out_.push_back(',');
  new_line();
  first_ = false;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_.push_back(bracket);
  ++depth_;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  --depth_;
  if (!first_) new_line();
  out_.push_back(bracket);
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(out_, name);
  out_.append(indent_ == 0 ? ":" : ": ");
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_.append(json);
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  append_json_string(out_, text);
  return *this;
}

JsonWriter& JsonWriter::value(bool flag) {
  return raw(flag ? "true" : "false");
}
JsonWriter& JsonWriter::null() {
  return raw("null");
}
JsonWriter& JsonWriter::value(WideInt number) {
  return raw(to_string(number));
}
JsonWriter& JsonWriter::value(double number) {
  // A negative zero, which readers take for an integer, becomes 0.
  return std::isfinite(number) ? raw(shortest(number + 0.0)) : null();
}

}  // namespace flopmeter
