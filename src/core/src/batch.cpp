// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/batch.h>
#include <flopmeter/core/fixed_batch.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <limits>
#include <string>

namespace flopmeter {
namespace {

constexpr std::string_view padded_word = "padded=";
constexpr std::string_view images_word = "images=";

/// The finalizer of splitmix64: spreads small numbers over 64 bits, so that sums of them identify
/// shapes.
std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

std::int32_t narrow(std::int64_t value) noexcept {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(value, 0, std::numeric_limits<std::int32_t>::max()));
}

/// Removes and returns the text before the next `mark`, or all of it, and removes the mark.
std::string_view take(std::string_view& text, char mark) {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

/// "1x24x24": exactly `n` positive integers.
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

WideInt Batch::count() const {
  WideInt sum = 0;
  for (const SequenceGroup& group : sequences) sum += group.count;
  return sum;
}

WideInt Batch::tokens() const {
  WideInt sum = 0;
  for (const SequenceGroup& group : sequences) sum += WideInt{group.length} * group.count;
  return sum;
}

FixedBatch& FixedBatch::operator=(const FixedBatch& other) noexcept {
  group_count_ = other.group_count_;
  image_count_ = other.image_count_;
  overflow_ = other.overflow_;
  padded_length_ = other.padded_length_;
  signature_ = other.signature_;
  std::copy_n(other.groups_.begin(), group_count_, groups_.begin());
  std::copy_n(other.images_.begin(), image_count_, images_.begin());
  return *this;
}

void FixedBatch::add_sequences(std::int64_t length, std::int64_t count) noexcept {
  if (length <= 0 || count <= 0) return;
  signature_ += mix(static_cast<std::uint64_t>(length)) * static_cast<std::uint64_t>(count);
  const std::int32_t short_length = narrow(length);
  for (std::uint16_t i = group_count_; i-- > 0;) {  // newest first: equal lengths come in a row
    if (groups_[i].length != short_length) continue;
    groups_[i].count = narrow(std::int64_t{groups_[i].count} + narrow(count));
    return;
  }
  if (group_count_ == most_groups) {
    overflow_ = true;
    return;
  }
  groups_[group_count_++] = {short_length, narrow(count)};
}

void FixedBatch::add_samples(std::int64_t count) noexcept {
  if (count > 0) signature_ += mix(0) * static_cast<std::uint64_t>(count);
}

void FixedBatch::add_image(const ImageGrid& grid) noexcept {
  const Grid small{narrow(grid.t), narrow(grid.h), narrow(grid.w)};
  const auto part = [](std::int32_t value) { return static_cast<std::uint64_t>(value); };
  signature_ += mix(mix(part(small.t) << 40U) ^ mix(part(small.h) << 20U) ^ part(small.w));
  if (image_count_ == most_images) {
    overflow_ = true;
    return;
  }
  images_[image_count_++] = small;
}

void FixedBatch::set_padded_length(std::int64_t length) noexcept {
  if (length <= 0 || length == padded_length_) return;
  padded_length_ = std::max(padded_length_, length);
  signature_ += mix(~static_cast<std::uint64_t>(length));
}

Batch FixedBatch::batch() const {
  Batch batch;
  if (!known()) return batch;
  batch.padded_length = padded_length_;
  for (std::size_t i = 0; i < group_count_; ++i)
    batch.sequences.push_back({.length = groups_[i].length, .count = groups_[i].count});
  for (std::size_t i = 0; i < image_count_; ++i)
    batch.images.push_back({.t = images_[i].t, .h = images_[i].h, .w = images_[i].w});
  return batch;
}

std::string to_text(const FixedBatch& batch) {
  std::string text;
  if (!batch.known()) return text;
  for (std::size_t i = 0; i < batch.group_count_; ++i) {
    const FixedBatch::Group& group = batch.groups_[i];
    text.append(i == 0 ? "" : ",").append(std::to_string(group.count));
    text.append("x").append(std::to_string(group.length));
  }
  if (batch.padded_length_ > 0)
    text.append(" ").append(padded_word).append(std::to_string(batch.padded_length_));
  for (std::size_t i = 0; i < batch.image_count_; ++i) {
    const FixedBatch::Grid& grid = batch.images_[i];
    if (i == 0) text.append(" ").append(images_word);
    text.append(i == 0 ? "" : ",").append(std::to_string(grid.t)).append("x");
    text.append(std::to_string(grid.h)).append("x").append(std::to_string(grid.w));
  }
  return text;
}

std::optional<FixedBatch> parse_batch(std::string_view text) {
  FixedBatch batch;
  std::string_view sequences = take(text, ' ');
  while (!sequences.empty()) {
    const auto group = numbers<2>(take(sequences, ','));
    if (!group) return std::nullopt;
    batch.add_sequences((*group)[1], (*group)[0]);
  }
  if (text.starts_with(padded_word)) {
    const auto length = parse_int(take(text, ' ').substr(padded_word.size()));
    if (!length || *length <= 0) return std::nullopt;
    batch.set_padded_length(*length);
  }
  if (text.starts_with(images_word)) {
    std::string_view images = take(text, ' ').substr(images_word.size());
    while (!images.empty()) {
      const auto grid = numbers<3>(take(images, ','));
      if (!grid) return std::nullopt;
      batch.add_image({.t = (*grid)[0], .h = (*grid)[1], .w = (*grid)[2]});
    }
  }
  if (!batch.known() || !text.empty()) return std::nullopt;
  return batch;
}

}  // namespace flopmeter
