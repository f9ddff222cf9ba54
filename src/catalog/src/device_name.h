// SPDX-License-Identifier: Apache-2.0
//
// Name of a device as a list of distinguishing words, for the reader of the table (no two rows have
// the same words) and the lookup.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// "NVIDIA A100-SXM4-80GB" as {"a100", "sxm", "80gb"}: lower case, without vendors and
/// brands, in the order written, without repetition.
std::vector<std::string> device_words(std::string_view name);

/// Two spellings of one name: the same words in any order ("A100 PCIe 80GB", "A100 80GB PCIe"), or
/// the same letters in other words ("RTX 4090", "RTX4090").
struct DeviceKey {
  std::vector<std::string> words;  ///< in a fixed order
  std::string letters;             ///< the words as written, joined
};
DeviceKey device_key(std::string_view name);

}  // namespace flopmeter
