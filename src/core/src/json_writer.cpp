// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/text.h>

#include <cmath>

namespace flopmeter {

void append_json_string(std::string& out, std::string_view text) {
  constexpr std::string_view hex = "0123456789abcdef";
  out.push_back('"');
  for (const char c : valid_utf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out.append("\\n");
    } else if (byte < 0x20 || byte == 0x7f ||
               c == '<') {  // '<': the text may land inside an HTML script
      out.append("\\u00");
      out.push_back(hex[byte >> 4U]);
      out.push_back(hex[byte & 15U]);
    } else {
      out.push_back(c);
    }
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
  return std::isfinite(number) ? raw(shortest(number)) : null();
}

}  // namespace flopmeter
