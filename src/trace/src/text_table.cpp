// SPDX-License-Identifier: Apache-2.0
#include "text_table.h"

#include <functional>

namespace flopmeter {

TextTable::TextTable() : slots_(1024) {}

TextId TextTable::id(std::string_view text) {
  const std::uint64_t hash = std::hash<std::string_view>{}(text);
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].id != no_text) {
    if (slots_[at].hash == hash && texts_[slots_[at].id] == text) return slots_[at].id;
    at = (at + 1) & mask;
  }
  const auto id = static_cast<TextId>(texts_.size());
  texts_.emplace_back(text);
  slots_[at] = {.hash = hash, .id = id};
  if (texts_.size() * 2 > slots_.size()) grow();
  return id;
}

void TextTable::grow() {
  std::vector<Slot> larger(slots_.size() * 2);
  const std::size_t mask = larger.size() - 1;
  for (const Slot& slot : slots_) {
    if (slot.id == no_text) continue;
    std::size_t at = slot.hash & mask;
    while (larger[at].id != no_text) at = (at + 1) & mask;
    larger[at] = slot;
  }
  slots_ = std::move(larger);
}

}  // namespace flopmeter
