// SPDX-License-Identifier: Apache-2.0
#include "op_table.h"

#include "count_call.h"
#include "thread_counters.h"

#include <flopmeter/counting/adapter.h>

#include <array>
#include <mutex>
#include <utility>

namespace flopmeter {
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

FlopmeterPrecision precision_of(std::string_view name) {
  if (name.find("conv") != std::string_view::npos) return FLOPMETER_CONVOLUTION_PRECISION;
  if (name.find("rnn") != std::string_view::npos) return FLOPMETER_RECURRENT_PRECISION;
  return FLOPMETER_MATMUL_PRECISION;
}

void set_rule(OpEntry& entry, const OpRule& rule) {
  entry.rule = &rule;
  entry.hides_attention = rule.hides_attention;
  entry.count = count_function(rule);
  entry.reads_output = reads_output(rule) ? 1 : 0;
  entry.openness = rule.open ? FLOPMETER_MULTIPLIES : FLOPMETER_CLOSED;
  entry.dtype_argument = rule.dtype_argument;
  if (rule.compute_dtype) entry.compute_dtype = static_cast<std::int32_t>(*rule.compute_dtype);
}

}  // namespace

void OpEntry::set_user_rule(UserRule replacement) {
  // Neither is freed: a thread may be in the old rule.
  user.store(new UserRule(std::move(replacement)), std::memory_order_release);
  __atomic_store_n(&openness, FLOPMETER_CLOSED, __ATOMIC_RELEASE);
  __atomic_store_n(&reads_output, 1, __ATOMIC_RELEASE);
  __atomic_store_n(&count, &count_by_user_rule, __ATOMIC_RELEASE);
}

OpEntry* find_or_add_op(std::string_view name_and_overload, const OpRule* rule) {
  Table& t = table();
  const OpRule* by_name = find_op_rule(name_and_overload);
  if (by_name != nullptr) rule = by_name;
  // Names of Python modules have dots as well.
  const std::size_t colons = name_and_overload.find("::");
  const std::string_view base =
      by_name != nullptr
          ? by_name->name
          : name_and_overload.substr(
                0, name_and_overload.find('.', colons == std::string_view::npos ? 0 : colons));
  const std::lock_guard lock(t.mutex);
  const std::size_t count = t.count.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i) {
    OpEntry* entry = t.entries[i].load();
    if (entry->name != base) continue;
    if (entry->rule == nullptr && rule != nullptr) set_rule(*entry, *rule);
    return entry;
  }
  if (count == max_ops) return nullptr;
  auto* entry = new OpEntry{};
  entry->count = [](const FlopmeterOp* op, const FlopmeterCall*) { add_unsupported(op); };
  entry->name = base;
  entry->index = static_cast<std::uint16_t>(count);
  entry->precision = precision_of(base);
  entry->compute_dtype = -1;
  entry->openness = FLOPMETER_OPEN;
  if (rule != nullptr) set_rule(*entry, *rule);
  t.entries[count].store(entry, std::memory_order_release);
  t.count.store(count + 1, std::memory_order_release);
  return entry;
}

const FlopmeterOp* counted_op(const std::string& name) {
  return find_or_add_op(name);
}

const OpRule* catalog_rule(const FlopmeterOp& op) {
  const auto& entry = static_cast<const OpEntry&>(op);
  return entry.user.load(std::memory_order_acquire) == nullptr ? entry.rule : nullptr;
}

bool has_rule(const FlopmeterOp& op) {
  const auto& entry = static_cast<const OpEntry&>(op);
  return (entry.rule != nullptr && !entry.rule->open) ||
         entry.user.load(std::memory_order_acquire) != nullptr;
}

const OpEntry* op_entry(std::size_t index) {
  return index < op_count() ? table().entries[index].load(std::memory_order_acquire) : nullptr;
}

std::size_t op_count() {
  return table().count.load(std::memory_order_acquire);
}

}  // namespace flopmeter
