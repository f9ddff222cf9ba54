// SPDX-License-Identifier: Apache-2.0
#include "json_cursor.h"

#include <cstdint>

namespace flopmeter {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// The code unit behind "\u" at `at`; -1 if there is none.
int code_unit(std::string_view text, std::size_t at) {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return -1;
  int unit = 0;
  for (std::size_t i = at + 2; i < at + 6; ++i) {
    const int digit = hex_digit(text[i]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

void append_utf8(std::string& out, std::uint32_t point) {
  const auto byte = [&](std::uint32_t bits) { out += static_cast<char>(bits); };
  if (point < 0x80) {
    byte(point);
  } else if (point < 0x800) {
    byte(0xC0 | point >> 6);
    byte(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    byte(0xE0 | point >> 12);
    byte(0x80 | (point >> 6 & 0x3F));
    byte(0x80 | (point & 0x3F));
  } else {
    byte(0xF0 | point >> 18);
    byte(0x80 | (point >> 12 & 0x3F));
    byte(0x80 | (point >> 6 & 0x3F));
    byte(0x80 | (point & 0x3F));
  }
}

char simple_escape(char c) {
  switch (c) {
    case '"':
    case '\\':
    case '/':
      return c;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return '\0';
  }
}

#ifdef __SSE2__
/// Where 64 characters have structure, a bit for each of them.
struct Block {
  std::uint64_t quotes = 0, backslashes = 0, opening = 0, closing = 0;

  explicit Block(const char* text) {
    for (int part = 0; part < 4; ++part) {
      const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text) + part);
      const __m128i folded = _mm_or_si128(c, _mm_set1_epi8(0x20));  // [ as {, ] as }
      const auto add = [part](std::uint64_t& bits, __m128i equal) {
        bits |= std::uint64_t{static_cast<unsigned>(_mm_movemask_epi8(equal))} << (16 * part);
      };
      add(quotes, _mm_cmpeq_epi8(c, _mm_set1_epi8('"')));
      add(backslashes, _mm_cmpeq_epi8(c, _mm_set1_epi8('\\')));
      add(opening, _mm_cmpeq_epi8(folded, _mm_set1_epi8('{')));
      add(closing, _mm_cmpeq_epi8(folded, _mm_set1_epi8('}')));
    }
  }
};

/// Each bit: whether an odd number of the bits up to it are set.
std::uint64_t prefix_xor(std::uint64_t bits) {
  for (int shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
}
#endif

}  // namespace

bool JsonCursor::skip_to_close(int depth) {
  bool in_string = false;
#ifdef __SSE2__
  for (; end_ - at_ >= 64; at_ += 64) {
    const Block block{at_};
    if (block.backslashes != 0) break;
    const std::uint64_t strings = prefix_xor(block.quotes) ^ (in_string ? ~std::uint64_t{0} : 0);
    for (std::uint64_t left = (block.opening | block.closing) & ~strings; left != 0;
         left &= left - 1) {
      const int i = std::countr_zero(left);
      depth += (block.opening >> i & 1) != 0 ? 1 : -1;
      if (depth == 0) {
        at_ += i + 1;
        return true;
      }
    }
    in_string = strings >> 63 != 0;
  }
#endif
  std::string_view ignored;
  if (in_string && !string_after_quote(ignored)) return false;
  while (at_ != end_) {
    const char c = *at_++;
    if (c == '"') {
      if (!string_after_quote(ignored)) return false;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return true;
    }
  }
  return false;
}

std::string unescape_json(std::string_view content) {
  std::string out;
  out.reserve(content.size());
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (content[i] != '\\' || i + 1 == content.size()) {
      out += content[i];
      continue;
    }
    if (const char simple = simple_escape(content[i + 1]); simple != '\0') {
      out += simple;
      ++i;
      continue;
    }
    const int unit = code_unit(content, i);
    if (unit < 0) {
      out += content[i];
      continue;
    }
    auto point = static_cast<std::uint32_t>(unit);
    i += 5;
    if (point >= 0xD800 && point < 0xDC00) {
      const int low = code_unit(content, i + 1);
      if (low >= 0xDC00 && low < 0xE000) {
        point = 0x10000 + ((point - 0xD800) << 10) + static_cast<std::uint32_t>(low - 0xDC00);
        i += 6;
      }
    }
    append_utf8(out, point >= 0xD800 && point < 0xE000 ? 0xFFFD : point);
  }
  return out;
}

}  // namespace flopmeter
