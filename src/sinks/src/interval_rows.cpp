// SPDX-License-Identifier: Apache-2.0
#include "interval_rows.h"

#include <flopmeter/core/text.h>

#include <array>
#include <cmath>
#include <ctime>
#include <utility>

namespace flopmeter {
namespace {

constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

template <class T>
std::optional<double> to_double(const std::optional<T>& value) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

std::optional<double> scaled(std::optional<double> value, double factor) {
  if (!value) return std::nullopt;
  return *value * factor;
}

}  // namespace

std::optional<IntervalRow> IntervalRows::add(const StepRecord& record) {
  if (record.tag != StepTag::train) return std::nullopt;
  const double seconds = record.step_seconds.value;
  sums_.last = record;
  ++sums_.steps;
  sums_.seconds += seconds;
  if (record.model_flops)
    sums_.flops.add(static_cast<double>(record.model_flops->value) / record.devices, seconds);
  sums_.samples.add(to_double(record.samples), seconds);
  sums_.tokens.add(to_double(record.tokens), seconds);
  sums_.mfu.add(scaled(record.mfu, seconds), seconds);
  sums_.hfu.add(scaled(record.hfu, seconds), seconds);
  for (std::size_t i = 0; i < phase_count; ++i) {
    if (!record.phases[i]) continue;
    sums_.phases[i] += record.phases[i]->value;
    sums_.has_phase[i] = true;
  }
  const std::int64_t interval = std::max(run_.log_interval, 1);
  const std::int64_t before = previous_step_.value_or(record.step > 0 ? record.step - 1 : 0);
  previous_step_ = record.step;
  if (floor_div(record.step, interval) == floor_div(before, interval)) return std::nullopt;
  return rest();
}

std::optional<IntervalRow> IntervalRows::rest() {
  if (sums_.steps == 0) return std::nullopt;
  IntervalRow done = row();
  sums_ = {};
  return done;
}

IntervalRow IntervalRows::row() const {
  IntervalRow row;
  row.last = sums_.last;
  row.steps = sums_.steps;
  row.step_seconds = {sums_.seconds / sums_.steps};
  row.tflops_per_device = scaled(sums_.flops.rate(), 1e-12);
  // An estimate is shared out evenly; a count is only this rank's.
  if (run_.equal_ranks || sums_.last.flops_source == FlopsProvenance::estimate)
    row.tflops_total =
        scaled(row.tflops_per_device, static_cast<double>(sums_.last.devices) * run_.world_size);
  row.samples_per_second = scaled(sums_.samples.rate(), run_.data_parallel);
  row.tokens_per_second = scaled(sums_.tokens.rate(), run_.data_parallel);
  row.mfu = sums_.mfu.rate();
  row.hfu = sums_.hfu.rate();
  for (std::size_t i = 0; i < phase_count; ++i) {
    if (sums_.has_phase[i]) row.phases[i] = Seconds{sums_.phases[i] / sums_.steps};
  }
  const StepRecord& last = sums_.last;
  const auto& now = last.memory_device_bytes ? last.memory_device_bytes : last.memory_rss_bytes;
  const auto& peak =
      last.memory_device_bytes ? last.memory_device_peak_bytes : last.memory_rss_peak_bytes;
  row.memory_gb = scaled(to_double(now), 1 / gibibyte);
  row.memory_peak_gb = scaled(to_double(peak), 1 / gibibyte);
  return row;
}

std::string local_time(double unix_seconds, char separator) {
  // Beyond these years the calendar functions fail.
  const bool sane = std::isfinite(unix_seconds) && std::abs(unix_seconds) < 2e11;
  const auto seconds = static_cast<std::time_t>(sane ? std::floor(unix_seconds) : 0);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 40> buffer{};
  const std::size_t size = std::strftime(buffer.data(), buffer.size(), "%Y-%m-%d %H:%M:%S", &parts);
  std::string text{buffer.data(), size};
  if (separator != ' ' && text.size() > 10) text[10] = separator;
  return text;
}

void append_padded(std::string& line, std::string_view text, std::size_t width) {
  line.append(text);
  line.append(text.size() < width ? width - text.size() : 1, ' ');
}

std::string fixed_or_na(std::optional<double> value, int decimals) {
  return value && std::isfinite(*value) ? fixed(*value, decimals) : "n/a";
}

std::string phases_text(const IntervalRow& row) {
  std::string text;
  for (std::size_t i = 0; i < phase_count; ++i) {
    if (!row.phases[i] || !(row.phases[i]->value > 0)) continue;
    text.append(text.empty() ? "" : " | ").append(to_string(static_cast<Phase>(i))).append(" ");
    text.append(fixed(row.phases[i]->value * 1e3, 1)).append(" ms (");
    text.append(percent(row.step_seconds.value > 0 ? *row.phases[i] / row.step_seconds : 0))
        .append(")");
  }
  return text;
}

}  // namespace flopmeter
