// SPDX-License-Identifier: Apache-2.0
#include "prometheus_text.h"

#include <flopmeter/core/text.h>

#include <cmath>

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

  /// Starts a metric, unless it is the open one.
  void metric(std::string_view name, std::string_view type, std::string_view help) {
    if (name == name_) return;
    out_.append("# HELP ").append(name).append(" ").append(help).append("\n");
    out_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
    name_ = name;
  }
  void sample(const std::string& value, std::string_view extra = {}, std::string_view suffix = {}) {
    out_.append(name_).append(suffix).append("{").append(labels_);
    if (!extra.empty()) out_.append(",").append(extra);
    out_.append("} ").append(value).append("\n");
  }
  [[nodiscard]] const std::string& text() const { return out_; }

 private:
  std::string labels_;
  std::string out_;
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

}  // namespace

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
  run_totals_.add(record);
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
  steps_ += static_cast<std::uint64_t>(record.steps);
  const double seconds = record.step_seconds.value;
  if (std::isfinite(seconds)) seconds_ += seconds;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (seconds / record.steps <= bounds[i])
      buckets_[i] += static_cast<std::uint64_t>(record.steps);
  }
}

std::string PrometheusText::text() const {
  Exposition out{"run=\"" + escaped(run_.metadata.run_id) + "\",rank=\"" +
                 std::to_string(run_.rank) + "\""};
  out.metric("flopmeter_run_info", "gauge", "constant 1, with the properties of the run as labels");
  out.sample("1",
             "model=\"" + escaped(run_.metadata.model) + "\",convention=\"" +
                 escaped(run_.metadata.convention) + "\",device=\"" +
                 escaped(run_.metadata.peaks.device) + "\",host=\"" + escaped(run_.host) +
                 "\",local_rank=\"" + std::to_string(run_.local_rank) + "\"" +
                 (run_.role ? ",role=\"" + std::to_string(*run_.role) + "\"" : ""));
  out.metric("flopmeter_world_size", "gauge", "ranks of the run");
  out.sample(std::to_string(run_.world_size()));
  out.metric("flopmeter_data_parallel_size", "gauge", "ranks that process different samples");
  out.sample(std::to_string(run_.data_parallel()));
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (!run_.metadata.peaks.peaks[i]) continue;
    out.metric("flopmeter_peak_flops_per_second", "gauge", "peak that utilization refers to");
    out.sample(number_text(run_.metadata.peaks.peaks[i]->value),
               "dtype=\"" + std::string{to_string(static_cast<Dtype>(i))} + "\",source=\"" +
                   escaped(run_.metadata.peaks.source) + "\"");
  }
  out.metric("flopmeter_steps_total", "counter", "finished train steps");
  out.sample(std::to_string(steps_));
  out.metric("flopmeter_step_duration_seconds", "histogram", "wall time of train steps");
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    out.sample(std::to_string(buckets_[i]), "le=\"" + shortest(bounds[i]) + "\"", "_bucket");
  }
  out.sample(std::to_string(steps_), "le=\"+Inf\"", "_bucket");
  out.sample(number_text(seconds_), {}, "_sum");
  out.sample(std::to_string(steps_), {}, "_count");
  const auto fields = step_fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    const std::string value = value_text(values_[i]);
    if (field.prometheus.empty() || value.empty()) continue;
    const std::size_t brace = std::min(field.prometheus.find('{'), field.prometheus.size());
    std::string_view label = field.prometheus.substr(brace);
    if (!label.empty()) label = label.substr(1, label.size() - 2);
    const bool sums = field.kind == FieldKind::counter || field.kind == FieldKind::total;
    // A label distinguishes the members of a group; one help text serves them all.
    out.metric(field.prometheus.substr(0, brace),
               sums ? "counter" : "gauge",
               label.empty()
                   ? std::string{field.help}
                   : std::string{field.group} + ", in " + std::string{to_string(field.unit)});
    out.sample(value, label);
  }
  if (const auto mfu = run_totals_.mfu()) {
    out.metric("flopmeter_run_mfu_ratio", "gauge", "model FLOPs utilization over the run");
    out.sample(number_text(*mfu));
  }
  return out.text();
}

}  // namespace flopmeter
