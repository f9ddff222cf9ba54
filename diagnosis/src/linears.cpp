// SPDX-License-Identifier: Apache-2.0
#include "linears.h"

#include <charconv>
#include <functional>
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

struct LinearTimes {
  double now = 0, then = 0;  ///< seconds of a step
};

/// The linears of the surveys once they are started, by the rates that their products reach now and
/// would reach.
LinearTimes linear_times(
    const Inquiry& inquiry,
    const std::function<std::optional<FlopsPerSecond>(const Product&)>& rate_then) {
  LinearTimes times;
  if (!inquiry.sums.own_dtype || inquiry.ops.on_device) return times;
  const PeakTable& peaks = inquiry.evidence.peaks;
  for (const SurveyResult& survey : typical(inquiry.evidence.surveys)) {
    for (const SurveyRow& row : survey.rows) {
      const auto product = product_of(row.shape);
      if (!is_linear(row) || row.recompute || !product) continue;
      const auto now = peaks.reached(*inquiry.sums.own_dtype, product->m, product->k, product->n);
      const auto then = rate_then(*product);
      if (!now || !then) continue;
      const double seconds = (row.self.value - starting_of(row)) / inquiry.ops.surveys;
      times.now += seconds;
      times.then += seconds * now->value / then->value;
    }
  }
  return times;
}

}  // namespace

double saved_by_rows(const Inquiry& inquiry, double times) {
  const double tokens = inquiry.tokens_at_once();
  const LinearTimes linears = linear_times(inquiry, [&](Product product) {
    // The weights' gradient sums over the tokens; the other products have a row for each.
    (product.m == tokens ? product.m : product.k) *= times;
    return inquiry.evidence.peaks.reached(*inquiry.sums.own_dtype, product.m, product.k, product.n);
  });
  return linears.now - linears.then;
}

std::optional<double> saved_in(const Inquiry& inquiry, Dtype dtype) {
  const LinearTimes linears = linear_times(inquiry, [&](const Product& product) {
    return inquiry.evidence.peaks.reached(dtype, product.m, product.k, product.n);
  });
  if (!(linears.now > 0)) return std::nullopt;
  return linears.now - linears.then;
}

}  // namespace flopmeter
