// SPDX-License-Identifier: Apache-2.0
//
// Every small mask, counted pair by pair.
#include <flopmeter/catalog/operations.h>

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace flopmeter {
namespace {

using Shape = MaskPairs::Shape;
constexpr std::array shapes = {Shape::full,
                               Shape::causal,
                               Shape::causal_bottom_right,
                               Shape::window,
                               Shape::chunk,
                               Shape::prefix};

/// Whether query `i` of `queries` uses key `j` of `keys`, by definition.
bool used(MaskPairs mask, std::int64_t i, std::int64_t j, std::int64_t queries, std::int64_t keys) {
  const std::int64_t position = i + keys - queries;
  switch (mask.shape) {
    case Shape::full:
      return true;
    case Shape::causal:
      return j <= i;
    case Shape::causal_bottom_right:
      return j <= position;
    case Shape::window:
      return j <= position && position - j < mask.size;
    case Shape::chunk:
      return mask.size > 0 && position >= 0 && j <= position &&
             j / mask.size == position / mask.size;
    case Shape::prefix:
      return j < mask.size || j <= position;
  }
  return false;
}

TEST(MaskPairs, closed_forms_count_every_small_mask) {
  for (const Shape shape : shapes) {
    for (std::int64_t queries = 0; queries <= 9; ++queries) {
      for (std::int64_t keys = 0; keys <= 9; ++keys) {
        for (std::int64_t size = -1; size <= 10; ++size) {
          const MaskPairs mask{.shape = shape, .size = size};
          int pairs = 0;
          for (std::int64_t i = 0; i < queries; ++i) {
            for (std::int64_t j = 0; j < keys; ++j) pairs += used(mask, i, j, queries, keys);
          }
          ASSERT_EQ(static_cast<int>(mask_pairs(mask, queries, keys)), pairs)
              << "shape " << static_cast<int>(shape) << ", " << queries << " x " << keys
              << ", size " << size;
        }
      }
    }
  }
}

TEST(MaskPairs, bands_count_every_small_band) {
  for (std::int64_t queries = 0; queries <= 7; ++queries) {
    for (std::int64_t keys = 0; keys <= 7; ++keys) {
      for (std::int64_t diagonal = -9; diagonal <= 9; ++diagonal) {
        for (std::int64_t width = 0; width <= 18; ++width) {
          int pairs = 0;
          for (std::int64_t i = 0; i < queries; ++i) {
            for (std::int64_t j = 0; j < keys; ++j) {
              pairs += j <= i + diagonal && j > i + diagonal - width;
            }
          }
          ASSERT_EQ(static_cast<int>(band_pairs(queries, keys, diagonal, width)), pairs)
              << queries << " x " << keys << ", diagonal " << diagonal << ", width " << width;
        }
      }
    }
  }
}

TEST(MaskPairs, packed_documents_do_not_attend_to_each_other) {
  const std::vector<std::int64_t> lengths = {3, 0, 1, 5, 4};
  std::vector<std::pair<int, std::int64_t>> tokens;  // document, position in it
  for (int document = 0; document < 5; ++document) {
    for (std::int64_t i = 0; i < lengths[static_cast<std::size_t>(document)]; ++i) {
      tokens.emplace_back(document, i);
    }
  }
  for (const Shape shape : shapes) {
    const MaskPairs mask{.shape = shape, .size = 2};
    int pairs = 0;
    for (const auto& [query_document, i] : tokens) {
      const std::int64_t length = lengths[static_cast<std::size_t>(query_document)];
      for (const auto& [key_document, j] : tokens) {
        pairs += query_document == key_document && used(mask, i, j, length, length);
      }
    }
    EXPECT_EQ(static_cast<int>(mask_pairs(mask, lengths)), pairs) << static_cast<int>(shape);
  }
}

TEST(MaskPairs, long_sequences_are_exact) {
  const std::int64_t length = 10'000'000'000;
  EXPECT_EQ(to_string(mask_pairs({.shape = Shape::causal}, length, length)),
            "50000000005000000000");
  EXPECT_EQ(to_string(mask_pairs({.shape = Shape::window, .size = 4096}, length, length)),
            "40959991613440");
}

}  // namespace
}  // namespace flopmeter
