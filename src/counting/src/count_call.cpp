// SPDX-License-Identifier: Apache-2.0
#include "count_call.h"

#include "host.h"
#include "late_calls.h"
#include "op_table.h"
#include "thread_counters.h"

#include <flopmeter/catalog/matmul_cost.h>

#include <optional>

namespace flopmeter {
namespace {

OpCall to_call(const FlopmeterCall& call) {
  return {.args = to_args(call.args, call.arg_count), .output = to_arg(call.output)};
}

AttentionPairs attention_pairs(const OpEntry& entry,
                               const FlopmeterCall& call,
                               const OpCost& cost) {
  if (cost.pairs != AttentionPairs::none || !entry.hides_attention) [[likely]]
    return cost.pairs;
  // A product of activations that sums over more than one element may be eager attention, whose
  // mask is not visible.
  const Arg factor = to_call(call).arg(entry.dtype_argument);
  return factor.is_tensor() && factor.rank > 0 && factor[-1] > 1 ? AttentionPairs::full
                                                                 : AttentionPairs::none;
}

void add(const OpEntry& entry, const FlopmeterCall& call, const OpCost& cost) {
  const auto dtype = static_cast<Dtype>(call.dtype);
  const auto pass = static_cast<PassAttribution>(call.pass);
  const auto executed = static_cast<std::uint64_t>(cost.executed.value);
  const auto model = call.optimizer_work != 0 ? 0 : static_cast<std::uint64_t>(cost.model.value);
  const AttentionPairs pairs = attention_pairs(entry, call, cost);
  const bool bounded = cost.bounded || pairs == AttentionPairs::unknown;
  ThreadCounters& counters = thread_counters();
  if (pass >= PassAttribution::pending_first || pairs != AttentionPairs::none || bounded ||
      call.module != FLOPMETER_MODULES_OFF) [[unlikely]] {
    counters.add_details(entry.index,
                         dtype,
                         pass,
                         {.executed = executed, .model = model, .pairs = pairs, .bounded = bounded},
                         call.module);
  }
  counters.add(entry.index, dtype, pass, executed, model);
}

/// The rule is known to the compiler: for the operators that a training step calls most.
template <std::optional<OpCost> (*flop_cost)(const OpCall&)>
void count_inline(const FlopmeterOp* op, const FlopmeterCall* call) noexcept {
  const auto& entry = static_cast<const OpEntry&>(*op);
  const std::optional<OpCost> cost = flop_cost(to_call(*call));
  if (!cost) [[unlikely]]
    return add_unsupported(op);
  add(entry, *call, *cost);
}

void count_by_rule(const FlopmeterOp* op, const FlopmeterCall* call) noexcept {
  const auto& entry = static_cast<const OpEntry&>(*op);
  std::optional<OpCost> cost = entry.rule->flop_cost(to_call(*call));
  if (!cost) return add_unsupported(op);
  if ((cost->pairs == AttentionPairs::unknown || cost->bounded) && call->tensors != nullptr &&
      entry.rule->packed != nullptr)
    resolve_starts(entry, *call, *cost);
  add(entry, *call, *cost);
}

}  // namespace

CountFunction count_function(const OpRule& rule) {
  if (rule.flop_cost == matmul_cost<0>) return count_inline<matmul_cost<0>>;
  if (rule.flop_cost == matmul_cost<1>) return count_inline<matmul_cost<1>>;
  if (rule.flop_cost == matmul_cost<0, 3>) return count_inline<matmul_cost<0, 3>>;
  if (rule.flop_cost == matmul_cost<1, 3>) return count_inline<matmul_cost<1, 3>>;
  return count_by_rule;
}

bool reads_output(const OpRule& rule) {
  return count_function(rule) == count_by_rule;
}

void count_by_user_rule(const FlopmeterOp* op, const FlopmeterCall* call) noexcept try {
  const auto& entry = static_cast<const OpEntry&>(*op);
  const auto work = (*entry.user.load(std::memory_order_acquire))(to_call(*call));
  if (!work) return add_unsupported(op);
  add(entry, *call, {.executed = *work, .model = *work, .bytes = {}});
} catch (...) {  // thrown by the user's rule
  add_unsupported(op);
}

void add_unsupported(const FlopmeterOp* op) noexcept {
  ThreadCounters& counters = thread_counters();
  counters.unsupported_op_calls.add(1);
  counters.unsupported_by_op[static_cast<const OpEntry*>(op)->index].add(1);
}

}  // namespace flopmeter
