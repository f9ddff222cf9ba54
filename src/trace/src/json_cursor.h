// SPDX-License-Identifier: Apache-2.0
//
// JsonCursor: moves forward over JSON text without copying it.  Real traces contain what JSON does
// not allow (bare nan, raw control characters, broken UTF-8, quotes inside names), so the cursor
// checks only the structure it steps over; a value that is not needed may be any text.
#pragma once

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace flopmeter {

/// Functions return false if the text does not continue as expected; the position is then
/// undefined.
class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text, std::size_t position = 0)
      : begin_(text.data()), at_(begin_ + position), end_(begin_ + text.size()) {}

  [[nodiscard]] std::size_t position() const { return static_cast<std::size_t>(at_ - begin_); }
  void move_to(std::size_t position) { at_ = begin_ + position; }
  [[nodiscard]] bool at_end() {
    skip_blanks();
    return at_ == end_;
  }

  /// The next character that is not blank; 0 at the end.
  char peek() {
    skip_blanks();
    return at_ == end_ ? '\0' : *at_;
  }
  bool take(char expected) {
    if (peek() != expected) return false;
    ++at_;
    return true;
  }

  /// The text between the quotes, escapes as they are.
  bool string(std::string_view& content) { return take('"') && string_after_quote(content); }
  /// A key and its colon.
  bool key(std::string_view& name) { return string(name) && take(':'); }

  /// A string without its quotes, a number or word, or the whole text of an object or array.
  bool value(std::string_view& text) {
    const char first = peek();
    if (first == '"') {
      ++at_;
      return string_after_quote(text);
    }
    const char* const from = at_;
    if (first == '{' || first == '[') {
      if (!skip_nested()) return false;
    } else if (!skip_word()) {
      return false;
    }
    text = {from, static_cast<std::size_t>(at_ - from)};
    return true;
  }
  bool skip_value() {
    std::string_view ignored;
    return value(ignored);
  }

  /// Steps over the rest of an object or array that is `depth` levels deep.
  bool skip_to_close(int depth);

 private:
  /// Blanks, and control characters, which JSON does not allow outside of strings.
  static bool is_blank(char c) { return static_cast<unsigned char>(c) <= ' '; }
  /// One of , " { } [ ] or a blank: what ends a number or word.
  static bool ends_word(char c) { return word_ends[static_cast<unsigned char>(c)]; }
  static constexpr std::array<bool, 256> word_ends = [] {
    std::array<bool, 256> table{};
    for (const char c : {',', '"', '{', '}', '[', ']'}) table[static_cast<unsigned char>(c)] = true;
    for (std::size_t c = 0; c <= ' '; ++c) table[c] = true;
    return table;
  }();

  void skip_blanks() {
    while (at_ != end_ && is_blank(*at_)) ++at_;
  }
  /// The next quote at or behind the cursor; null if there is none.  Most strings are short, so the
  /// call of memchr would cost more than the search.
  const char* find_quote() {
    const char* at = at_;
#ifdef __SSE2__
    for (; end_ - at >= 16; at += 16) {
      const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
      const int quotes = _mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8('"')));
      if (quotes != 0) return at + std::countr_zero(static_cast<unsigned>(quotes));
    }
#endif
    return static_cast<const char*>(std::memchr(at, '"', static_cast<std::size_t>(end_ - at)));
  }
  bool string_after_quote(std::string_view& content) {
    const char* const from = at_;
    for (;;) {
      const char* const quote = find_quote();
      if (quote == nullptr) return false;
      at_ = quote + 1;
      const char* before = quote;
      while (before != from && before[-1] == '\\') --before;
      if ((quote - before) % 2 == 0) {
        content = {from, static_cast<std::size_t>(quote - from)};
        return true;
      }
    }
  }
  bool skip_word() {
    const char* const from = at_;
    while (at_ != end_ && !ends_word(*at_)) ++at_;
    return at_ != from;
  }
  bool skip_nested() {
    ++at_;
    return skip_to_close(1);
  }

  const char* begin_;
  const char* at_;
  const char* end_;
};

/// The content of a JSON string with its escapes resolved; an escape that JSON does not know stays
/// as it is.
std::string unescape_json(std::string_view content);

}  // namespace flopmeter
