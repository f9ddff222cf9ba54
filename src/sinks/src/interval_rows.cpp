// SPDX-License-Identifier: Apache-2.0
#include "interval_rows.h"

#include <flopmeter/core/device_bound.h>
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

std::optional<double> to_double(const std::optional<std::int64_t>& value) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

std::optional<double> scaled(std::optional<double> value, double factor) {
  if (!value) return std::nullopt;
  return *value * factor;
}

}  // namespace

std::optional<IntervalRow> IntervalRows::add(const StepRecord& record) {
  if (!is_step(record.tag)) return std::nullopt;
  const bool is_first = record.tag == StepTag::train && run_totals_.steps == 0;
  if (record.tag == StepTag::train) {
    last_ = record;
    means_.add(record);
    totals_.add(record);
    run_totals_.add(record);
  } else {  // its figures are not those of a usual step, but it may end the interval
    last_.step = record.step;
    last_.time_unix = record.time_unix;
  }
  const std::int64_t interval = std::max(run_.log_interval(), 1);
  const std::int64_t before = previous_step_.value_or(record.step > 0 ? record.step - 1 : 0);
  previous_step_ = record.step;
  if (!row_unix_) row_unix_ = record.time_unix - record.step_seconds.value;
  const bool ends = floor_div(record.step, interval) != floor_div(before, interval);
  if (!ends && !(is_first && run_.first_row)) return std::nullopt;
  if (record.time_unix - *row_unix_ < least_seconds_) return std::nullopt;
  row_unix_ = record.time_unix;
  return rest();
}

std::optional<IntervalRow> IntervalRows::rest() {
  if (totals_.steps == 0) return std::nullopt;
  IntervalRow done = row();
  means_.clear();
  totals_ = {};
  return done;
}

IntervalRow IntervalRows::row() const {
  IntervalRow row;
  row.last = last_;
  row.steps = totals_.steps;
  row.step_seconds = totals_.step_seconds().value_or(Seconds{});
  row.tflops_per_device = scaled(totals_.flops_per_second(), 1e-12);
  if (const auto factor = total_factor(run_, last_))
    row.tflops_total = scaled(row.tflops_per_device, *factor);
  row.samples_per_second = scaled(totals_.samples_per_second(), run_.data_parallel());
  row.tokens_per_second = scaled(totals_.tokens_per_second(), run_.data_parallel());
  row.mfu = totals_.mfu();
  row.mfu_run = run_totals_.mfu();
  row.hfu = totals_.hfu();
  for (std::size_t i = 0; i < phase_count; ++i) {
    if (totals_.phases[i])
      row.phases[i] = Seconds{*totals_.phases[i] / static_cast<double>(totals_.steps)};
  }
  row.bound = device_bound(totals_.device);
  row.means = means_;
  const StepRecord& last = last_;
  const auto& now = last.memory_device_bytes ? last.memory_device_bytes : last.memory_rss_bytes;
  const auto& peak =
      last.memory_device_bytes ? last.memory_device_peak_bytes : last.memory_rss_peak_bytes;
  row.memory_gb = scaled(to_double(now), 1 / gibibyte);
  row.memory_peak_gb = scaled(to_double(peak), 1 / gibibyte);
  return row;
}

std::optional<double> total_factor(const RunContext& run, const StepRecord& record) {
  // An estimate is split evenly; a count is that of this rank.
  const bool even = run.equal_ranks || record.flops_source == FlopsProvenance::estimate ||
                    record.flops_source == FlopsProvenance::framework;
  if (!even) return std::nullopt;
  return static_cast<double>(record.devices) * run.world_size();
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
