// SPDX-License-Identifier: Apache-2.0
#include "eager_attention.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <compare>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

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
  for (const IdleSpan& span : profile.idle) {
    const bool compute = span.phase == Phase::forward || span.phase == Phase::backward;
    if (!compute || span.recompute || span.stall || span.count == 0) continue;
    const auto count = static_cast<double>(span.count);
    const double one = span.time.value / count;
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

Seen inspect(const OpProfile& profile) {
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

namespace {

/// Tensors of a row's shape, "[48,1024,64] [48,64,1024]".
std::vector<std::vector<double>> tensors_of(std::string_view shape) {
  std::vector<std::vector<double>> tensors;
  for (std::size_t at = 0; at < shape.size(); ++at) {
    if (shape[at] == '[') tensors.emplace_back();
    double size = 0;
    const auto [end, error] = std::from_chars(shape.data() + at, shape.data() + shape.size(), size);
    if (error != std::errc{} || tensors.empty()) continue;
    tensors.back().push_back(size);
    at = static_cast<std::size_t>(end - shape.data()) - 1;
  }
  return tensors;
}

double elements_of(const std::vector<double>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), 1.0, std::multiplies<>{});
}

/// The scores of attention: batch and heads by queries by keys.
struct Scores {
  double elements = 0;
  double keys = 0;
  auto operator<=>(const Scores&) const = default;
};

bool is_of(const std::vector<double>& sizes, const std::set<Scores>& scores) {
  return !sizes.empty() && scores.contains({elements_of(sizes), sizes.back()});
}

/// Whether a batched product has scores as an argument, in either order, or as its result.
bool multiplies(const OpProfileRow& row, const std::set<Scores>& scores) {
  const auto tensors = tensors_of(row.shape);
  const auto has_scores = [&](const Scores& each) {
    if (std::any_of(tensors.begin(), tensors.end(), [&](const auto& sizes) {
          return elements_of(sizes) == each.elements;
        }))
      return true;
    if (tensors.size() < 2) return false;
    const auto& a = tensors[tensors.size() - 2];
    const auto& b = tensors.back();
    return !a.empty() && !b.empty() && elements_of(a) / a.back() * b.back() == each.elements;
  };
  return std::any_of(scores.begin(), scores.end(), has_scores);
}

/// Sizes of the queries, keys, and values that products of the scores read.
std::set<double> operands_of(const OpProfile& profile, const std::set<Scores>& scores) {
  std::set<double> operands;
  for (const OpProfileRow& row : profile.rows) {
    if (row.kind != OpKind::compute || is_linear(row) || !multiplies(row, scores)) continue;
    for (const auto& sizes : tensors_of(row.shape)) {
      const double elements = elements_of(sizes);
      const auto is_score = [&](const Scores& each) { return each.elements == elements; };
      if (std::none_of(scores.begin(), scores.end(), is_score)) operands.insert(elements);
    }
  }
  return operands;
}

/// On a device a fused kernel keeps the scores on the chip: operators that move them disappear, and
/// its products run as fast as those of the linear layers.  It reads heads in any memory order, for
/// which batched products need copies.
std::optional<EagerAttention> eager_on_device(const RuleContext& context) {
  constexpr double backward_products = 5.0 / 4;  // of a fused kernel, which repeats one of two
  const auto profiles = typical(context.evidence.profiles);
  EagerAttention found;
  double seconds = 0;
  for (const OpProfile& profile : profiles) {
    const Seen seen = inspect(profile);
    if (seen.fused || seen.softmax_calls == 0) return std::nullopt;
    std::set<Scores> scores;
    for (const OpProfileRow& row : profile.rows) {
      const auto tensors = tensors_of(row.shape);
      if (row.name == "aten::_softmax" && row.elements >= least_scores && !tensors.empty() &&
          tensors[0].size() > 2)
        scores.insert({elements_of(tensors[0]), tensors[0].back()});
    }
    const std::set<double> operands = operands_of(profile, scores);
    double moving = 0, products = 0, linears = 0, linear_flops = 0, flops = 0, fused_flops = 0;
    for (const OpProfileRow& row : profile.rows) {
      if (row.phase == Phase::optimizer || row.recompute) continue;
      const auto row_flops = static_cast<double>(row.flops);
      if (is_linear(row)) {
        linears += row.self.value;
        linear_flops += row_flops;
      } else if (row.kind == OpKind::compute && multiplies(row, scores)) {
        products += row.self.value;
        flops += row_flops;
        fused_flops += row_flops * (row.backward ? backward_products : 1);
      } else if (row.kind == OpKind::memory) {
        const auto tensors = tensors_of(row.shape);
        const bool reorders = contains(row.name, "copy_") && tensors.size() == 1 &&
                              tensors[0].size() == 4 && operands.contains(elements_of(tensors[0]));
        if (reorders || (!tensors.empty() && is_of(tensors[0], scores))) moving += row.self.value;
      }
    }
    if (!(linear_flops > 0)) return std::nullopt;
    if (seen.masked) fused_flops /= 2;
    seconds += moving + products - fused_flops * linears / linear_flops;
    found.softmax_calls += seen.softmax_calls / static_cast<double>(profiles.size());
    if (seen.masked)
      found.hidden_share += flops / seen.flops / 2 / static_cast<double>(profiles.size());
  }
  if (!(seconds > 0)) return std::nullopt;
  const double first = context.ops.seen() - context.ops.recompute;
  const double again = first > 0 ? context.ops.recompute / first : 0;
  found.nanoseconds =
      context.all_steps(seconds / static_cast<double>(profiles.size()) * (1 + again));
  return found;
}

}  // namespace

std::optional<EagerAttention> eager_attention(const RuleContext& context) {
  if (context.evidence.profiles.empty() || context.ops.kernels_unknown()) return std::nullopt;
  if (context.ops.device_times) return eager_on_device(context);
  const auto profiles = typical(context.evidence.profiles);
  const auto n = static_cast<double>(profiles.size());
  EagerAttention found;
  double seconds = 0;
  double launching = 0;
  for (const OpProfile& profile : profiles) {
    Seen seen = inspect(profile);
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
