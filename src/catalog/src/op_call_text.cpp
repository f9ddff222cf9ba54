// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/catalog/op_call_text.h>
#include <flopmeter/core/text.h>

#include <optional>
#include <string>
#include <utility>

namespace flopmeter {
namespace {

Error error(std::string_view word) {
  return {ErrorCode::parse_error,
          "'" + printable(word) +
              "' is not an argument; use tensors [2,3], lists (1,1), numbers, or - for none"};
}

/// The next word; words in braces are one word.
std::string_view take_word(std::string_view& text) {
  const std::size_t start = text.find_first_not_of(' ');
  if (start == std::string_view::npos) return text = {};
  text.remove_prefix(start);
  const std::size_t close = text.front() == '{' ? text.find('}') : text.find(' ');
  const std::size_t size =
      close == std::string_view::npos ? text.size() : close + (text.front() == '{' ? 1 : 0);
  const std::string_view word = text.substr(0, size);
  text.remove_prefix(size);
  return word;
}

std::optional<std::vector<std::int64_t>> parse_numbers(std::string_view text) {
  std::vector<std::int64_t> numbers;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::optional<long long> number = parse_int(text.substr(0, comma));
    if (!number || comma + 1 == text.size()) return std::nullopt;
    numbers.push_back(*number);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return numbers;
}

/// "bf16[2,3]", "[2,3]", or "(1,1)": the part in brackets goes to `values`.
std::optional<Arg> parse_bracketed(std::string_view word,
                                   std::deque<std::vector<std::int64_t>>& values) {
  const std::size_t open = word.find_first_of("[(");
  if (open == std::string_view::npos || word.back() != (word[open] == '[' ? ']' : ')'))
    return std::nullopt;
  const auto numbers = parse_numbers(word.substr(open + 1, word.size() - open - 2));
  if (!numbers) return std::nullopt;
  const std::string_view type = word.substr(0, open);
  values.push_back(*numbers);
  if (word[open] == '(')
    return type.empty() ? std::optional{Arg::list(values.back())} : std::nullopt;
  if (type == "complex") {
    Arg arg = Arg::tensor(values.back());
    arg.complex = true;
    return arg;
  }
  if (type == "int32") return Arg::tensor(values.back(), Dtype::other);
  const std::optional<Dtype> dtype = type.empty() ? Dtype::fp32 : parse_dtype(type);
  return dtype ? std::optional{Arg::tensor(values.back(), *dtype)} : std::nullopt;
}

}  // namespace

Result<OwnedOpCall> parse_op_call(std::string_view text) {
  OwnedOpCall owned;
  bool returned = false;
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
    Arg arg;
    if (word == "->" && !returned) {
      returned = true;
      continue;
    }
    if (word.front() == '{') {
      if (word.size() < 2 || word.back() != '}') return error(word);
      std::vector<Arg>& items = owned.items_.emplace_back();
      std::string_view inner = word.substr(1, word.size() - 2);
      for (std::string_view item = take_word(inner); !item.empty(); item = take_word(inner)) {
        const std::optional<Arg> tensor = parse_bracketed(item, owned.values_);
        if (!tensor || !tensor->is_tensor()) return error(item);
        items.push_back(*tensor);
      }
      arg = Arg::tensors(items);
    } else if (const std::optional<Arg> bracketed = parse_bracketed(word, owned.values_)) {
      arg = *bracketed;
    } else if (const std::optional<long long> number = parse_int(word)) {
      arg = Arg::number(*number);
    } else if (word != "-") {
      return error(word);
    }
    if (returned) {
      owned.output_ = arg;
    } else {
      owned.args_.push_back(arg);
    }
  }
  return owned;
}

}  // namespace flopmeter
