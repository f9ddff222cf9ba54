// SPDX-License-Identifier: Apache-2.0
//
// The head that the class of a configuration (`architectures`) has.  Private to the catalog.
#pragma once

#include <flopmeter/catalog/config.h>
#include <flopmeter/catalog/model.h>

#include <string_view>

namespace flopmeter {

enum class Head : std::uint8_t { words, words_and_pair, sequence, tokens, answer, none };

struct ClassHead {
  Head head = Head::words;
  std::string note;  ///< if the class is unknown
};

/// Head by the ending of the class name.  `types` are the family's: it has the class with words.
ClassHead read_class_head(const Config& config, std::string_view types);

/// Number of labels of a classifier; transformers writes their names, not their number.
std::int64_t read_labels(const Config& config);

/// Replaces the scores of all words by the head of the class.
void replace_head(Model& model, const Config& config, std::string_view types);

}  // namespace flopmeter
