// SPDX-License-Identifier: Apache-2.0
#include "slot.h"

#include <algorithm>
#include <limits>

namespace flopmeter {
namespace {

/// The finaliser of splitmix64: spreads small numbers over 64 bits, so that sums of them tell
/// shapes apart.
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

}  // namespace

void ShapeNote::add_sequences(std::int64_t length, std::int64_t count) noexcept {
  if (length <= 0 || count <= 0) return;
  signature += mix(static_cast<std::uint64_t>(length)) * static_cast<std::uint64_t>(count);
  const std::int32_t short_length = narrow(length);
  for (std::uint16_t i = group_count; i-- > 0;) {  // the newest first: equal lengths come in a row
    if (groups[i].length != short_length) continue;
    groups[i].count = narrow(groups[i].count + count);
    return;
  }
  if (group_count == most_groups) {
    too_many = true;
    return;
  }
  groups[group_count++] = {short_length, narrow(count)};
}

void ShapeNote::add_samples(std::int64_t count) noexcept {
  if (count > 0) signature += mix(0) * static_cast<std::uint64_t>(count);
}

void ShapeNote::add_image(const ImageShape& grid) noexcept {
  const auto part = [](std::int32_t value) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(value));
  };
  signature += mix(mix(part(grid.t) << 40U) ^ mix(part(grid.h) << 20U) ^ part(grid.w));
  if (image_count == most_images) {
    too_many = true;
    return;
  }
  images[image_count++] = grid;
}

void ShapeNote::set_padded_length(std::int64_t length) noexcept {
  if (length <= 0 || length == padded_length) return;
  padded_length = std::max(padded_length, length);
  signature += mix(~static_cast<std::uint64_t>(length));
}

}  // namespace flopmeter
