// SPDX-License-Identifier: Apache-2.0
#include "../src/eager_attention.h"

#include "../src/example_window.h"

#include <gtest/gtest.h>

namespace flopmeter {
namespace {

/// Two layers of four linears, and attention in `softmax` pieces of two products each.
Evidence attending(const char* product, std::uint64_t softmax) {
  return example_window({}, [&](Evidence& window) {
    const auto op = [](const char* name, OpKind kind, std::uint64_t calls, std::int64_t elements) {
      return OpProfileRow{.name = name,
                          .kind = kind,
                          .calls = calls,
                          .self = {1e-5 * static_cast<double>(calls)},
                          .elements = elements,
                          .phase = Phase::forward,
                          .flops = kind == OpKind::compute ? calls * 1'000'000 : 0};
    };
    window.profiles[0].rows = {op("aten::mm", OpKind::compute, 8, 1 << 16),
                               op(product, OpKind::compute, softmax, 1 << 10),
                               op(product, OpKind::compute, softmax, 1 << 14),
                               op("aten::_softmax", OpKind::memory, softmax, 1 << 14)};
  });
}

bool is_per_head(const Evidence& evidence) {
  const StepTotals totals = summarize(evidence);
  const OpTimes ops = op_times(evidence);
  const TimeBudget budget = make_budget(evidence, ops);
  const auto found = eager_attention({evidence, totals, ops, budget});
  return found && found->per_head;
}

TEST(EagerAttention, a_loop_over_heads_is_seen_in_batched_and_in_plain_matmuls) {
  EXPECT_TRUE(is_per_head(attending("aten::bmm", 2 * 12)));
  EXPECT_TRUE(is_per_head(attending("aten::mm", 2 * 4 * 12)));
}

TEST(EagerAttention, all_heads_at_once_are_not_a_loop) {
  EXPECT_FALSE(is_per_head(attending("aten::bmm", 2)));
  EXPECT_FALSE(is_per_head(attending("aten::mm", 2)));
}

}  // namespace
}  // namespace flopmeter
