// SPDX-License-Identifier: Apache-2.0
#include "eager_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>

namespace flopmeter {
namespace {

constexpr std::int64_t least_scores = 1024;  // elements: a router's softmax is smaller

bool contains(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

bool is_softmax(const OpProfileRow& row) {
  return contains(row.name, "softmax") && !contains(row.name, "log_softmax");
}

/// Operators that hide scores from an eager attention.
bool is_mask(const OpProfileRow& row) {
  constexpr std::array parts = {"masked_fill", "aten::where", "aten::tril", "bitwise_not"};
  return std::any_of(
      parts.begin(), parts.end(), [&](std::string_view part) { return contains(row.name, part); });
}

/// Key of equal calls, tiny or not.
using CallKey = std::tuple<std::string_view, Phase, bool, std::int64_t>;
CallKey call_key(const OpProfileRow& row) {
  return {row.name, row.phase, row.backward, row.elements};
}

/// Figures of one profile, in seconds and calls of its step.
struct Seen {
  double softmax_calls = 0, linears = 0;     ///< in forward
  double plain_products = 0;                 ///< of the linears: without a bias
  double softmax = 0, softmax_backward = 0;  ///< seconds
  double around = 0;                         ///< seconds of other operators that are only its own
  double launching = 0;  ///< seconds of its small operators and on the way from one to the next
  double flops = 0, product_flops = 0;
  bool fused = false, masked = false;
};

/// Part of the calls that a loop over heads makes: a whole number for each head, what is over
/// belongs to others.
double part_of_loop(double calls, double softmax_calls) {
  return softmax_calls > 0 ? std::floor(calls / softmax_calls) * softmax_calls / calls : 0;
}

/// One softmax for each layer's four linears or more, or one a head.  Heads that are looped over
/// sample by sample multiply plain matrices, as linears without a bias do: two a softmax.
bool is_per_head(const Seen& seen) {
  const double others = seen.linears - 2 * seen.softmax_calls;
  const bool plain = seen.plain_products >= 2 * seen.softmax_calls && seen.softmax_calls > others;
  return plain || seen.softmax_calls > 0.6 * seen.linears;
}

/// The ways from one operator to the next.  Those of a loop over heads are short: the long ones
/// lead through modules and the training loop.
struct Ways {
  double count = 0;
  double shortest = 0;  ///< seconds of one call, in the phase with the shorter calls
};

Ways ways_of(const OpProfile& profile) {
  Ways ways;
  for (const IdleSpan& gap : profile.gaps) {
    const bool compute = gap.phase == Phase::forward || gap.phase == Phase::backward;
    if (!compute || gap.recompute || gap.pause || gap.count == 0) continue;
    const auto count = static_cast<double>(gap.count);
    const double one = gap.time.value / count;
    ways.shortest = ways.count > 0 ? std::min(ways.shortest, one) : one;
    ways.count += count;
  }
  return ways;
}

void look_around(const OpProfile& profile, bool per_head, Seen& seen) {
  std::map<CallKey, double> calls;
  for (const OpProfileRow& row : profile.rows) {
    if (!row.recompute) calls[call_key(row)] += static_cast<double>(row.calls);
  }
  double own_calls = 0;
  double all_calls = 0;
  for (const OpProfileRow& row : profile.rows) {
    if (row.phase == Phase::optimizer || row.recompute) continue;
    const auto row_calls = static_cast<double>(row.calls);
    all_calls += row_calls;
    double part = per_head ? part_of_loop(calls[call_key(row)], seen.softmax_calls) : 0;
    if (is_mask(row)) part = 1;
    own_calls += part * row_calls;
    const bool kept = row.kind == OpKind::compute || is_softmax(row);
    if (kept) {
      seen.around += part * starting_of(row);  // of many, where a fused kernel is one
    } else {
      (is_small(row) ? seen.launching : seen.around) += part * row.self.value;
    }
  }
  const Ways ways = ways_of(profile);
  if (all_calls > 0) seen.launching += own_calls / all_calls * ways.count * ways.shortest;
}

Seen look(const OpProfile& profile) {
  Seen seen;
  for (const OpProfileRow& row : profile.rows) {
    if (row.phase == Phase::optimizer || row.recompute) continue;
    const auto calls = static_cast<double>(row.calls);
    seen.fused = seen.fused || contains(row.name, "scaled_dot_product") ||
                 contains(row.name, "flash_attention");
    seen.masked = seen.masked || is_mask(row);
    seen.flops += static_cast<double>(row.flops);
    if (is_linear(row)) {
      if (row.backward) continue;
      seen.linears += calls;
      if (contains(row.name, "aten::mm")) seen.plain_products += calls;
    } else {
      seen.product_flops += static_cast<double>(row.flops);
    }
    if (!is_softmax(row) || row.elements < least_scores) continue;
    (row.backward ? seen.softmax_backward : seen.softmax) += row.self.value;
    if (!row.backward && row.name == "aten::_softmax") seen.softmax_calls += calls;
  }
  return seen;
}

}  // namespace

std::optional<EagerAttention> eager_attention(const RuleContext& context) {
  if (context.evidence.profiles.empty() || context.ops.on_device) return std::nullopt;
  const auto profiles = typical(context.evidence.profiles);
  const auto n = static_cast<double>(profiles.size());
  EagerAttention found;
  double seconds = 0;
  double launching = 0;
  for (const OpProfile& profile : profiles) {
    Seen seen = look(profile);
    if (seen.fused || seen.softmax_calls == 0 || seen.linears == 0) return std::nullopt;
    found.per_head = is_per_head(seen);
    look_around(profile, found.per_head, seen);
    found.softmax_calls += seen.softmax_calls / n;
    // A fused kernel multiplies heads of the same size, exponentiates their scores in forward, and
    // does so again in backward: it saves what lies around that.
    seconds += (seen.around + std::max(seen.softmax_backward - seen.softmax, 0.0)) / n;
    if (found.per_head) launching += seen.launching / n;
    if (seen.masked) found.hidden_share += seen.product_flops / seen.flops / 2 / n;
  }
  const double all = context.ops.between + context.ops.small;
  found.launching =
      std::llround(static_cast<double>(context.with_padding(causes::launch_overhead)) *
                   (all > 0 ? std::min(1.0, launching / all) : 0));
  const double once =
      static_cast<double>(context.all_steps(seconds)) + static_cast<double>(found.launching);
  // Where activations are computed again, so is this.
  const double first = context.ops.seen() - context.ops.recompute;
  const double again = first > 0 ? context.ops.recompute / first : 0;
  found.nanoseconds =
      std::min<std::int64_t>(std::llround(once * (1 + again)), context.budget.total / 2);
  return found;
}

}  // namespace flopmeter
