// SPDX-License-Identifier: Apache-2.0
#include "prometheus_text.h"

#include <flopmeter/core/text.h>

#include <cmath>
#include <utility>

namespace flopmeter {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '\\' || c == '"') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return shortest(value);
}

/// Writes series with their HELP and TYPE lines.
class Exposition {
 public:
  explicit Exposition(std::string labels) : labels_(std::move(labels)) {}

  /// Samples that follow belong to this metric.  A metric without samples is not written.
  void metric(std::string_view name, std::string_view type, std::string_view help) {
    if (name == name_) return;
    name_ = name;
    head_.assign("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ");
    head_.append(name).append(" ").append(type).append("\n");
  }
  void sample(const std::string& value, std::string_view extra = {}, std::string_view suffix = {}) {
    out_.append(std::exchange(head_, {})).append(name_).append(suffix).append("{").append(labels_);
    if (!extra.empty()) out_.append(",").append(extra);
    out_.append("} ").append(value).append("\n");
  }
  [[nodiscard]] const std::string& text() const { return out_; }

 private:
  std::string labels_;
  std::string out_;
  std::string head_;  ///< of the metric, until its first sample
  std::string name_;
};

/// The number as Prometheus reads it; empty if it is unknown or not finite.
std::string value_text(const FieldValue& value) {
  if (const auto* integer = std::get_if<WideInt>(&value)) return to_string(*integer);
  const auto* number = std::get_if<double>(&value);
  return number != nullptr && std::isfinite(*number) ? number_text(*number) : std::string{};
}

void add_to(FieldValue& sum, const FieldValue& value) {
  if (const auto* integer = std::get_if<WideInt>(&value)) {
    const auto* before = std::get_if<WideInt>(&sum);
    sum = (before != nullptr ? *before : 0) + *integer;
  } else if (const auto number = as_number(value); number && std::isfinite(*number)) {
    sum = as_number(sum).value_or(0) + *number;
  }
}

std::string label(std::string_view name, std::string_view value) {
  return std::string{name} + "=\"" + escaped(value) + "\"";
}

void write_info(Exposition& out, const RunContext& run) {
  out.sample("1",
             label("model", run.metadata.model) + "," +
                 label("convention", run.metadata.convention) + "," +
                 label("device", run.metadata.peaks.device) + "," + label("host", run.host) + "," +
                 label("local_rank", std::to_string(run.local_rank)) +
                 (run.role ? "," + label("role", std::to_string(*run.role)) : ""));
}

void write_peaks(Exposition& out, const PeakTable& table) {
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (!table.peaks[i]) continue;
    out.sample(
        number_text(table.peaks[i]->value),
        label("dtype", to_string(static_cast<Dtype>(i))) + "," + label("source", table.source));
  }
}

using Totals = PrometheusText::Totals;

void write_histogram(Exposition& out, const Totals& totals) {
  for (std::size_t i = 0; i < Totals::bounds.size(); ++i) {
    out.sample(
        std::to_string(totals.buckets[i]), label("le", shortest(Totals::bounds[i])), "_bucket");
  }
  out.sample(std::to_string(totals.steps), label("le", "+Inf"), "_bucket");
  out.sample(number_text(totals.seconds), {}, "_sum");
  out.sample(std::to_string(totals.steps), {}, "_count");
}

struct RunSeries {
  OutputSeries series;
  std::string_view type;
  void (*write)(Exposition& out, const RunContext& run, const Totals& totals);
};

/// Written from the start, so that a run that hangs before its first record can be found.
constexpr auto all_run_series = std::to_array<RunSeries>({
    {{"flopmeter_run_info", Unit::none, "constant 1, with the properties of the run as labels"},
     "gauge",
     [](auto& out, auto& run, auto&) { write_info(out, run); }},
    {{"flopmeter_world_size", Unit::count, "ranks of the run"},
     "gauge",
     [](auto& out, auto& run, auto&) { out.sample(std::to_string(run.world_size())); }},
    {{"flopmeter_data_parallel_size", Unit::count, "ranks that process different samples"},
     "gauge",
     [](auto& out, auto& run, auto&) { out.sample(std::to_string(run.data_parallel())); }},
    {{"flopmeter_peak_flops_per_second", Unit::per_second, "peak that utilization refers to"},
     "gauge",
     [](auto& out, auto& run, auto&) { write_peaks(out, run.metadata.peaks); }},
    {{"flopmeter_steps_total", Unit::count, "finished train steps"},
     "counter",
     [](auto& out, auto&, auto& totals) { out.sample(std::to_string(totals.steps)); }},
    {{"flopmeter_step_duration_seconds", Unit::seconds, "wall time of train steps"},
     "histogram",
     [](auto& out, auto&, auto& totals) { write_histogram(out, totals); }},
    {{"flopmeter_run_mfu_ratio", Unit::ratio, "model FLOPs utilization over the run"},
     "gauge",
     [](auto& out, auto&, auto& totals) {
       if (const auto mfu = totals.run.mfu()) out.sample(number_text(*mfu));
     }},
});

}  // namespace

std::vector<OutputSeries> PrometheusText::run_series() {
  std::vector<OutputSeries> all;
  for (const RunSeries& each : all_run_series) all.push_back(each.series);
  return all;
}

void PrometheusText::add(const StepRecord& record) {
  const auto fields = step_fields();
  const bool train = record.tag == StepTag::train;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    if (field.prometheus.empty()) continue;
    const FieldValue value = field.read(record);
    if (field.kind == FieldKind::counter) {
      // Time passes in every record; work is that of train steps.
      if (train || field.unit == Unit::seconds) add_to(values_[i], value);
    } else if (field.kind != FieldKind::ratio) {
      values_[i] = value;
    }
  }
  if (!train) return;
  interval_.add(record);
  totals_.run.add(record);
  interval_steps_ += record.steps;
  if (interval_steps_ >= run_.log_interval() || !interval_complete_) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].kind != FieldKind::ratio) continue;
      const auto mean = interval_.mean(i);
      values_[i] = mean ? FieldValue{*mean} : FieldValue{};
    }
  }
  if (interval_steps_ >= run_.log_interval()) {
    interval_complete_ = true;
    interval_steps_ = 0;
    interval_.clear();
  }
  totals_.steps += static_cast<std::uint64_t>(record.steps);
  const double seconds = record.step_seconds.value;
  if (std::isfinite(seconds)) totals_.seconds += seconds;
  for (std::size_t i = 0; i < Totals::bounds.size(); ++i) {
    if (seconds / record.steps <= Totals::bounds[i])
      totals_.buckets[i] += static_cast<std::uint64_t>(record.steps);
  }
}

std::string PrometheusText::text() const {
  Exposition out{label("run", run_.metadata.run_id) + "," +
                 label("rank", std::to_string(run_.rank))};
  for (const auto& [series, type, write] : all_run_series) {
    out.metric(series.name, type, series.help);
    write(out, run_, totals_);
  }
  const auto fields = step_fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    const std::string value = value_text(values_[i]);
    if (field.prometheus.empty() || value.empty()) continue;
    const std::size_t brace = std::min(field.prometheus.find('{'), field.prometheus.size());
    std::string_view member = field.prometheus.substr(brace);
    if (!member.empty()) member = member.substr(1, member.size() - 2);
    const bool sums = field.kind == FieldKind::counter || field.kind == FieldKind::total;
    // A label distinguishes the members of a group; one help text serves them all.
    out.metric(field.prometheus.substr(0, brace),
               sums ? "counter" : "gauge",
               member.empty()
                   ? std::string{field.help}
                   : std::string{field.group} + ", in " + std::string{to_string(field.unit)});
    out.sample(value, member);
  }
  return out.text();
}

}  // namespace flopmeter
