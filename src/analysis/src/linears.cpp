// SPDX-License-Identifier: Apache-2.0
#include "linears.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <vector>

namespace flopmeter {
namespace {

/// [m, k] times [k, n]
struct Product {
  double m = 0, k = 0, n = 0;
};

/// The last two tensors of a row's shape: "[768] [512,192] [192,768]".
std::optional<Product> product_of(std::string_view shape) {
  std::vector<double> sizes;
  for (std::size_t at = 0; at < shape.size(); ++at) {
    double size = 0;
    const auto [end, error] = std::from_chars(shape.data() + at, shape.data() + shape.size(), size);
    if (error != std::errc{}) continue;
    sizes.push_back(size);
    at = static_cast<std::size_t>(end - shape.data());
  }
  const std::size_t n = sizes.size();
  if (n < 4 || sizes[n - 3] != sizes[n - 2]) return std::nullopt;
  return Product{sizes[n - 4], sizes[n - 2], sizes[n - 1]};
}

/// A linear layer in a profile: equal calls.
struct Linear {
  const OpProfileRow* row;
  Product product;

  [[nodiscard]] double calls() const { return static_cast<double>(row->calls); }
  [[nodiscard]] double seconds_a_call() const { return row->self.value / calls(); }
  [[nodiscard]] double flops_a_call() const { return static_cast<double>(row->flops) / calls(); }
};

/// Those that are not computed again.
std::vector<Linear> linears_of(const OpProfile& profile) {
  std::vector<Linear> linears;
  for (const OpProfileRow& row : profile.rows) {
    const auto product = product_of(row.shape);
    if (is_linear(row) && !row.recompute && product && row.calls > 0)
      linears.push_back({&row, *product});
  }
  return linears;
}

/// Seconds in which a call of this operator does no work yet: where the line through the times of
/// its products, small and large, meets no work.
double start_of(std::string_view name, const std::vector<Linear>& linears) {
  double weights = 0, flops = 0, seconds = 0;
  double shortest = std::numeric_limits<double>::infinity();
  const auto weight = [](const Linear& each) {  // by how far a time may be off
    return each.calls() / (each.seconds_a_call() * each.seconds_a_call());
  };
  const auto summarize = [&](const auto& add) {
    for (const Linear& each : linears) {
      if (each.row->name == name && each.row->self.value > 0) add(each, weight(each));
    }
  };
  summarize([&](const Linear& each, double w) {
    weights += w;
    flops += w * each.flops_a_call();
    seconds += w * each.seconds_a_call();
    shortest = std::min(shortest, each.seconds_a_call());
  });
  if (!(weights > 0)) return 0;
  flops /= weights;
  seconds /= weights;
  double spread = 0, together = 0;
  summarize([&](const Linear& each, double w) {
    spread += w * (each.flops_a_call() - flops) * (each.flops_a_call() - flops);
    together += w * (each.flops_a_call() - flops) * (each.seconds_a_call() - seconds);
  });
  return spread > 0 ? std::min(seconds - together / spread * flops, shortest) : 0;
}

}  // namespace

double saved_by_rows(const RuleContext& context, double times) {
  const PeakTable& peaks = context.evidence.peaks;
  const auto dtype = main_dtype(context.totals);
  if (!dtype || context.ops.kernels_unknown() || !peaks.memory_bytes_per_second) return 0;
  const double tokens = context.tokens_at_once();
  double saved = 0;
  for (const OpProfile& profile : typical(context.evidence.profiles)) {
    const std::vector<Linear> linears = linears_of(profile);
    for (const Linear& each : linears) {
      auto [m, k, n] = each.product;
      // The weights' gradient sums over the tokens; the other products have a row for each.
      const double weights = (m == tokens ? k * n : m * n) / (m * k + k * n + m * n);
      const double moving =
          weights * static_cast<double>(each.row->bytes) / *peaks.memory_bytes_per_second;
      const double starting =
          std::max(each.calls() * start_of(each.row->name, linears), starting_of(*each.row));
      const double now = each.row->self.value;
      (m == tokens ? m : k) *= times;
      double then = times * now;
      if (const auto rate = peaks.reached(*dtype, m, k, n)) {
        const double computing = times * static_cast<double>(each.row->flops) / rate->value;
        then = std::min(then, starting + computing);
      } else {
        then -= (times - 1) * std::min(starting + moving, now);
      }
      saved += now - then / times;
    }
  }
  return saved / context.ops.profiles;
}

std::optional<double> saved_in(const RuleContext& context, Dtype dtype) {
  const auto own = main_dtype(context.totals);
  if (!own || context.ops.kernels_unknown()) return std::nullopt;
  const auto rate = [&](Dtype in, const Product& product) {
    return context.evidence.peaks.reached(in, product.m, product.k, product.n);
  };
  double now = 0, then = 0;
  for (const OpProfile& profile : typical(context.evidence.profiles)) {
    for (const Linear& each : linears_of(profile)) {
      const auto rate_now = rate(*own, each.product);
      const auto rate_then = rate(dtype, each.product);
      if (!rate_now || !rate_then) continue;
      const double seconds = each.row->self.value - starting_of(*each.row);
      now += seconds;
      then += seconds * rate_now->value / rate_then->value;
    }
  }
  if (!(now > 0)) return std::nullopt;
  return (now - then) / context.ops.profiles;
}

}  // namespace flopmeter
