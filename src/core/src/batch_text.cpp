// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/flop_estimator.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <array>
#include <limits>

namespace flopmeter {
namespace {

constexpr std::string_view padded_word = "padded=";
constexpr std::string_view images_word = "images=";

/// Takes what comes before the next `mark`, and the mark; all of it where there is none.
std::string_view take(std::string_view& text, char mark) {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

/// "1x24x24": as many whole numbers above zero as asked for.
template <std::size_t n>
std::optional<std::array<std::int32_t, n>> numbers(std::string_view text) {
  std::array<std::int32_t, n> found{};
  for (std::int32_t& number : found) {
    const auto value = parse_int(take(text, 'x'));
    if (!value || *value <= 0 || *value > std::numeric_limits<std::int32_t>::max())
      return std::nullopt;
    number = static_cast<std::int32_t>(*value);
  }
  if (!text.empty()) return std::nullopt;
  return found;
}

}  // namespace

std::string to_text(const BatchShape& shape) {
  std::string text;
  for (const SequenceGroup& group : shape.sequences) {
    text.append(text.empty() ? "" : ",").append(std::to_string(group.count));
    text.append("x").append(std::to_string(group.length));
  }
  if (shape.padded_length > 0) {
    text.append(" ").append(padded_word).append(std::to_string(shape.padded_length));
  }
  for (const ImageShape& grid : shape.images) {
    if (&grid == shape.images.data()) {
      text.append(" ").append(images_word);
    } else {
      text.append(",");
    }
    text.append(std::to_string(grid.t)).append("x").append(std::to_string(grid.h));
    text.append("x").append(std::to_string(grid.w));
  }
  return text;
}

std::optional<StoredBatch> parse_batch(std::string_view text) {
  StoredBatch batch;
  std::string_view sequences = take(text, ' ');
  while (!sequences.empty()) {
    const auto group = numbers<2>(take(sequences, ','));
    if (!group) return std::nullopt;
    batch.sequences.push_back({.length = (*group)[1], .count = (*group)[0]});
  }
  if (text.starts_with(padded_word)) {
    const auto length = parse_int(take(text, ' ').substr(padded_word.size()));
    if (!length || *length <= 0) return std::nullopt;
    batch.padded_length = *length;
  }
  if (text.starts_with(images_word)) {
    std::string_view images = take(text, ' ').substr(images_word.size());
    while (!images.empty()) {
      const auto grid = numbers<3>(take(images, ','));
      if (!grid) return std::nullopt;
      batch.images.push_back({.t = (*grid)[0], .h = (*grid)[1], .w = (*grid)[2]});
    }
  }
  if (batch.sequences.empty() || !text.empty()) return std::nullopt;
  return batch;
}

}  // namespace flopmeter
