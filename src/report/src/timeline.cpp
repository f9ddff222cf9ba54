// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/report/timeline.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace flopmeter {
namespace {

void merge(Bucket& into, const Bucket& from) {
  into.first_step = std::min(into.first_step, from.first_step);
  into.last_step = std::max(into.last_step, from.last_step);
  into.steps += from.steps;
  into.time_unix = std::max(into.time_unix, from.time_unix);
  for (std::size_t i = 0; i < into.spreads.size(); ++i) into.spreads[i].add(from.spreads[i]);
  into.quantiles.add(from.quantiles);
}

}  // namespace

void ValueSpread::add(double value, std::int64_t times) {
  if (!std::isfinite(value)) return;
  sum += value * static_cast<double>(times);
  low = std::min(low, value);
  high = std::max(high, value);
  count += times;
}

void ValueSpread::add(const ValueSpread& other) {
  sum += other.sum;
  low = std::min(low, other.low);
  high = std::max(high, other.high);
  count += other.count;
}

std::optional<double> ValueSpread::mean() const {
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

namespace {

constexpr double bin_width = 0.04;  ///< of the natural logarithm

}  // namespace

void QuantileSketch::add(double value, std::uint32_t times) {
  if (!(value > 0) || !std::isfinite(value)) return;
  const auto bin = static_cast<std::int16_t>(std::lround(std::log(value) / bin_width));
  const auto place = std::lower_bound(
      bins_.begin(), bins_.end(), bin, [](const auto& each, int key) { return each.first < key; });
  if (place != bins_.end() && place->first == bin) {
    place->second += times;
  } else {
    bins_.insert(place, {bin, times});
  }
}

void QuantileSketch::add(const QuantileSketch& other) {
  std::map<std::int16_t, std::uint32_t> sum{bins_.begin(), bins_.end()};
  for (const auto& [bin, count] : other.bins_) sum[bin] += count;
  bins_.assign(sum.begin(), sum.end());
}

std::optional<double> QuantileSketch::at(double share) const {
  std::uint64_t all = 0;
  for (const auto& [bin, count] : bins_) all += count;
  if (all == 0) return std::nullopt;
  const auto rank =
      static_cast<std::uint64_t>(std::floor(share * static_cast<double>(all - 1) + 0.5));
  std::uint64_t seen = 0;
  for (const auto& [bin, count] : bins_) {
    seen += count;
    if (seen > rank) return std::exp(bin_width * bin);
  }
  return std::nullopt;
}

Timeline::Timeline(std::span<const std::string_view> fields, std::size_t most)
    : most_(std::max<std::size_t>(most, 2)) {  // steps on both sides of 0 never fall together
  for (const std::string_view name : fields) {
    const Field* field = find_step_field(name);
    assert(field != nullptr);
    if (name == "step_seconds") quantile_curve_ = curves_.size();
    curves_.push_back(field);
  }
}

void Timeline::add(const StepRecord& record) {
  // Shifting rounds down for negative steps too.
  auto place = buckets_.try_emplace(record.step >> shift_);
  Bucket& bucket = place.first->second;
  if (place.second) {
    bucket.first_step = bucket.last_step = record.step;
    bucket.time_unix = record.time_unix;
    bucket.spreads.resize(curves_.size());
  }
  bucket.first_step = std::min(bucket.first_step, record.step);
  bucket.last_step = std::max(bucket.last_step, record.step);
  bucket.steps += record.steps;
  bucket.time_unix = std::max(bucket.time_unix, record.time_unix);
  for (std::size_t i = 0; i < curves_.size(); ++i) {
    const auto value = as_number(curves_[i]->read(record));
    if (!value) continue;
    const bool is_sum = curves_[i]->kind == FieldKind::counter;
    bucket.spreads[i].add(is_sum ? *value / record.steps : *value, record.steps);
  }
  if (quantile_curve_ < curves_.size())
    bucket.quantiles.add(record.step_seconds.value / record.steps,
                         static_cast<std::uint32_t>(record.steps));
  while (buckets_.size() > most_) coarsen();
}

void Timeline::coarsen() {
  ++shift_;
  std::map<std::int64_t, Bucket> wider;
  for (auto& [index, bucket] : buckets_) {
    auto place = wider.try_emplace(index >> 1, std::move(bucket));
    if (!place.second) merge(place.first->second, bucket);
  }
  buckets_ = std::move(wider);
}

}  // namespace flopmeter
