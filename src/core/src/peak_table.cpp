// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/peak_table.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace flopmeter {
namespace {

/// The value at `x` of a curve through the points, straight over log x.
double interpolated(const std::map<std::int64_t, double>& points, double x) {
  const auto above = std::find_if(points.begin(), points.end(), [x](const auto& point) {
    return static_cast<double>(point.first) >= x;
  });
  if (above == points.begin()) return above->second;
  const auto below = std::prev(above);
  if (above == points.end()) return below->second;
  const auto low = static_cast<double>(below->first);
  const double part = std::log(x / low) / std::log(static_cast<double>(above->first) / low);
  return below->second + part * (above->second - below->second);
}

}  // namespace

std::optional<FlopsPerSecond> PeakTable::reached(Dtype dtype, double m, double k, double n) const {
  std::map<std::int64_t, std::map<std::int64_t, double>> by_width;
  for (const ShapeRate& shape : shapes) {
    if (shape.dtype == dtype) by_width[shape.width][shape.rows] = shape.rate.value;
  }
  if (by_width.empty()) return std::nullopt;
  std::map<std::int64_t, double> at_rows;
  for (const auto& [width, rates] : by_width) at_rows[width] = interpolated(rates, m);
  return FlopsPerSecond{interpolated(at_rows, std::sqrt(k * n))};
}

}  // namespace flopmeter
