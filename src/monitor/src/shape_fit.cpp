// SPDX-License-Identifier: Apache-2.0
#include "shape_fit.h"

#include <cmath>
#include <span>

namespace flopmeter {
namespace {

constexpr std::size_t most_samples = 64;
constexpr long double tolerance = 1e-3L;  // allowed difference of a sample from the fit

/// Target `i` of a sample: model FLOPs by dtype, hardware FLOPs by dtype, recompute.
std::uint64_t& target(FlopEstimate& flops, std::size_t i) {
  if (i < dtype_count) return flops.model[i];
  if (i < 2 * dtype_count) return flops.hardware[i - dtype_count];
  return flops.recompute;
}

}  // namespace

ShapeFit::Features ShapeFit::features_of(const Batch& shape) {
  Features f{};
  for (const SequenceGroup& group : shape.sequences) {
    const long double real = group.length;
    const long double padded = shape.padded_length > 0 ? shape.padded_length : real;
    const long double n = group.count;
    f[0] += n * padded;
    f[1] += n * padded * padded;
    f[2] += n * real;
    f[3] += n * real * real;
    f[4] += n;
  }
  for (const ImageGrid& grid : shape.images) {
    const long double patches = static_cast<long double>(grid.t) * grid.h * grid.w;
    f[5] += patches;
    f[6] += patches * grid.h * grid.w;  // frames of a video do not attend to one another
  }
  return f;
}

void ShapeFit::clear() {
  samples_.clear();
  coefficients_ = {};
  good_ = false;
}

void ShapeFit::add(const Batch& shape, const FlopEstimate& flops) {
  if (samples_.size() == most_samples) samples_.erase(samples_.begin());
  samples_.push_back({features_of(shape), flops});
  solve();
}

/// Gram-Schmidt on columns scaled to length one.  A column that the ones before it already span is
/// omitted, so a loop that never pads or never shows an image needs no counts to prove it.
void ShapeFit::solve() {
  const std::size_t n = samples_.size();
  std::vector<std::vector<long double>> basis;
  std::array<std::array<long double, feature_count>, feature_count> r{};
  std::array<long double, feature_count> scale{};
  std::vector<std::size_t> used;
  for (std::size_t j = 0; j < feature_count; ++j) {
    std::vector<long double> column(n);
    for (std::size_t i = 0; i < n; ++i) {
      column[i] = samples_[i].features[j];
      scale[j] += column[i] * column[i];
    }
    scale[j] = std::sqrt(scale[j]);
    if (scale[j] == 0) continue;
    for (auto& value : column) value /= scale[j];
    for (int twice = 0; twice < 2; ++twice) {  // the second pass reduces rounding
      for (std::size_t k = 0; k < basis.size(); ++k) {
        long double dot = 0;
        for (std::size_t i = 0; i < n; ++i) dot += basis[k][i] * column[i];
        r[k][j] += dot;
        for (std::size_t i = 0; i < n; ++i) column[i] -= dot * basis[k][i];
      }
    }
    long double rest = 0;
    for (const auto value : column) rest += value * value;
    rest = std::sqrt(rest);
    if (rest < 1e-9L) continue;
    for (auto& value : column) value /= rest;
    r[basis.size()][j] = rest;
    basis.push_back(std::move(column));
    used.push_back(j);
  }
  good_ = n > used.size();  // at least one count beyond those that determine the coefficients
  for (std::size_t t = 0; t < coefficients_.size(); ++t) {
    coefficients_[t].reset();
    std::vector<long double> y(n);
    bool any = false;
    for (std::size_t i = 0; i < n; ++i) {
      y[i] = static_cast<long double>(target(samples_[i].flops, t));
      any = any || y[i] != 0;
    }
    if (!any) continue;
    Features c{};
    std::vector<long double> q(used.size());
    for (std::size_t k = 0; k < used.size(); ++k) {
      for (std::size_t i = 0; i < n; ++i) q[k] += basis[k][i] * y[i];
    }
    for (std::size_t k = used.size(); k-- > 0;) {
      long double value = q[k];
      for (std::size_t m = k + 1; m < used.size(); ++m) value -= r[k][used[m]] * c[used[m]];
      c[used[k]] = value / r[k][used[k]];
    }
    for (const std::size_t j : used) c[j] /= scale[j];
    for (std::size_t i = 0; i < n; ++i) {
      long double sum = 0;
      for (std::size_t j = 0; j < feature_count; ++j) sum += c[j] * samples_[i].features[j];
      if (std::fabs(sum - y[i]) > tolerance * y[i]) good_ = false;
    }
    coefficients_[t] = c;
  }
}

std::optional<FlopEstimate> ShapeFit::predict(const Batch& shape) const {
  if (!good_) return std::nullopt;
  const Features f = features_of(shape);
  FlopEstimate flops;
  for (std::size_t t = 0; t < coefficients_.size(); ++t) {
    if (!coefficients_[t]) continue;
    long double sum = 0;
    for (std::size_t j = 0; j < feature_count; ++j) sum += (*coefficients_[t])[j] * f[j];
    if (!(sum >= 0)) return std::nullopt;
    target(flops, t) = static_cast<std::uint64_t>(std::llroundl(sum));
  }
  return flops;
}

}  // namespace flopmeter
