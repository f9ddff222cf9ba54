// SPDX-License-Identifier: Apache-2.0
//
// TextTable: gives each distinct text a small number.  A trace has millions of names and shapes but
// only thousands of different ones.
#pragma once

#include <flopmeter/trace/trace.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Not thread-safe.
class TextTable {
 public:
  TextTable();

  /// The number of `text`: the next free one if it is new.
  TextId id(std::string_view text);
  [[nodiscard]] std::size_t size() const { return texts_.size(); }
  [[nodiscard]] std::string_view operator[](TextId id) const { return texts_[id]; }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    TextId id = no_text;
  };
  void grow();

  std::deque<std::string> texts_;
  std::vector<Slot> slots_;  // open addressing; a power of two, at most half full
};

}  // namespace flopmeter
