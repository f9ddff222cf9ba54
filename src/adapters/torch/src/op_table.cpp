// SPDX-License-Identifier: Apache-2.0
#include "op_table.h"

#include <array>
#include <mutex>

namespace flopmeter::torch_adapter {
namespace {

struct Table {
  std::mutex mutex;
  std::array<std::atomic<OpEntry*>, max_ops> entries{};
  std::atomic<std::size_t> count{0};
};
Table& table() {
  static Table& instance = *new Table;
  return instance;
}

Precision precision_of(std::string_view name) {
  if (name.find("conv") != std::string_view::npos) return Precision::convolution;
  if (name.find("rnn") != std::string_view::npos) return Precision::recurrent;
  return Precision::matmul;
}

}  // namespace

OpEntry* find_or_add_op(std::string_view name_and_overload) {
  Table& t = table();
  const OpRule* rule = find_op_rule(name_and_overload);
  const std::string_view base =
      rule != nullptr ? rule->name : name_and_overload.substr(0, name_and_overload.find('.'));
  const std::lock_guard lock(t.mutex);
  const std::size_t count = t.count.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i) {
    if (t.entries[i].load()->name == base) return t.entries[i].load();
  }
  if (count == max_ops) return nullptr;
  auto* entry = new OpEntry;
  entry->name = base;
  entry->index = static_cast<std::uint16_t>(count);
  entry->rule = rule;
  entry->precision = precision_of(base);
  entry->hides_attention = rule != nullptr && rule->hides_attention;
  t.entries[count].store(entry, std::memory_order_release);
  t.count.store(count + 1, std::memory_order_release);
  return entry;
}

const OpEntry* op_entry(std::size_t index) {
  return index < op_count() ? table().entries[index].load(std::memory_order_acquire) : nullptr;
}

std::size_t op_count() {
  return table().count.load(std::memory_order_acquire);
}

}  // namespace flopmeter::torch_adapter
