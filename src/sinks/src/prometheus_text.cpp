// SPDX-License-Identifier: Apache-2.0
#include "prometheus_text.h"

#include <flopmeter/core/text.h>

#include <cmath>

namespace flopmeter {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    if (c == '\\' || c == '"') out.push_back('\\');
    if (c == '\n') {
      out.append("\\n");
    } else {
      out.push_back(c);
    }
  }
  return out;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return shortest(value);
}

/// Writes groups of series with their HELP and TYPE lines.
class Exposition {
 public:
  explicit Exposition(std::string labels) : labels_(std::move(labels)) {}

  void group(std::string_view name, std::string_view type, std::string_view help) {
    out_.append("# HELP ").append(name).append(" ").append(help).append("\n");
    out_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
    name_ = name;
  }
  void sample(const std::string& value, std::string_view extra = {}, std::string_view suffix = {}) {
    out_.append(name_).append(suffix).append("{").append(labels_);
    if (!extra.empty()) out_.append(",").append(extra);
    out_.append("} ").append(value).append("\n");
  }
  void single(std::string_view name,
              std::string_view type,
              std::string_view help,
              std::optional<std::string> value) {
    if (!value) return;
    group(name, type, help);
    sample(*value);
  }
  [[nodiscard]] const std::string& text() const { return out_; }

 private:
  std::string labels_;
  std::string out_;
  std::string name_;
};

std::optional<std::string> known(std::optional<double> value) {
  return value && std::isfinite(*value) ? std::optional{number_text(*value)} : std::nullopt;
}
std::optional<std::string> known(bool has, WideInt value) {
  return has ? std::optional{to_string(value)} : std::nullopt;
}
std::optional<std::string> known(const std::optional<std::int64_t>& value) {
  return value ? std::optional{std::to_string(*value)} : std::nullopt;
}

}  // namespace

void PrometheusText::add(const StepRecord& record) {
  last_ = record;
  for (std::size_t i = 0; i < phase_count; ++i) {
    if (!record.phases[i]) continue;
    has_phase_[i] = true;
    phases_[i] += record.phases[i]->value;
  }
  if (record.tag != StepTag::train) return;
  ++steps_;
  const double seconds = record.step_seconds.value;
  if (std::isfinite(seconds)) seconds_ += seconds;
  for (std::size_t i = 0; i < bounds.size(); ++i) buckets_[i] += seconds <= bounds[i] ? 1 : 0;
  const auto add_known = [](auto& sum, bool& has, const auto& value) {
    if (!value) return;
    has = true;
    sum += *value;
  };
  add_known(tokens_, has_tokens_, record.tokens);
  add_known(samples_, has_samples_, record.samples);
  if (record.model_flops) {
    has_flops_ = true;
    flops_ += record.model_flops->value;
  }
  if (record.replicated_flops) {
    has_replicated_ = true;
    replicated_ += record.replicated_flops->value;
  }
}

std::string PrometheusText::text() const {
  Exposition out{"run=\"" + escaped(run_.run_id) + "\",rank=\"" + std::to_string(run_.rank) + "\""};
  out.group("flopmeter_run_info", "gauge", "Constant 1 with what the run is about");
  out.sample("1",
             "model=\"" + escaped(run_.model) + "\",convention=\"" + escaped(run_.convention) +
                 "\",device=\"" + escaped(run_.peaks.device) + "\",host=\"" + escaped(run_.host) +
                 "\",local_rank=\"" + std::to_string(run_.local_rank) + "\"" +
                 (run_.role ? ",role=\"" + std::to_string(*run_.role) + "\"" : ""));
  out.single("flopmeter_world_size", "gauge", "Ranks of the run", std::to_string(run_.world_size));
  out.single("flopmeter_data_parallel_size",
             "gauge",
             "Ranks of the run that work on different samples",
             std::to_string(run_.data_parallel));
  bool any_peak = false;
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (!run_.peaks.peaks[i]) continue;
    if (!any_peak)
      out.group(
          "flopmeter_peak_flops_per_second", "gauge", "Peak that utilization is measured against");
    any_peak = true;
    out.sample(number_text(run_.peaks.peaks[i]->value),
               "dtype=\"" + std::string{to_string(static_cast<Dtype>(i))} + "\",source=\"" +
                   escaped(run_.peaks.source) + "\"");
  }
  out.single("flopmeter_steps_total", "counter", "Train steps finished", std::to_string(steps_));
  out.single("flopmeter_tokens_total",
             "counter",
             "Real tokens in train steps of this rank",
             known(has_tokens_, tokens_));
  out.single("flopmeter_samples_total",
             "counter",
             "Samples in train steps of this rank",
             known(has_samples_, samples_));
  out.single("flopmeter_model_flops_total",
             "counter",
             "Model FLOPs of train steps of this rank",
             known(has_flops_, flops_));
  out.single("flopmeter_replicated_flops_total",
             "counter",
             "Part of the model FLOPs that another rank counts as its own",
             known(has_replicated_, replicated_));

  out.group("flopmeter_step_duration_seconds", "histogram", "Wall time of train steps");
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    out.sample(std::to_string(buckets_[i]), "le=\"" + shortest(bounds[i]) + "\"", "_bucket");
  }
  out.sample(std::to_string(steps_), "le=\"+Inf\"", "_bucket");
  out.sample(number_text(seconds_), {}, "_sum");
  out.sample(std::to_string(steps_), {}, "_count");

  bool any_phase = false;
  for (std::size_t i = 0; i < phase_count; ++i) {
    if (!has_phase_[i]) continue;
    if (!any_phase)
      out.group("flopmeter_phase_seconds_total", "counter", "Time in each phase of training");
    any_phase = true;
    out.sample(number_text(phases_[i]),
               "phase=\"" + std::string{to_string(static_cast<Phase>(i))} + "\"");
  }
  if (!last_) return out.text();
  const StepRecord& last = *last_;
  out.single("flopmeter_mfu_ratio",
             "gauge",
             "Model FLOPs utilization over the last log interval",
             known(last.mfu_window));
  out.single("flopmeter_run_mfu_ratio",
             "gauge",
             "Model FLOPs utilization over the whole run",
             known(last.mfu_run));
  out.single("flopmeter_hfu_ratio",
             "gauge",
             "Hardware FLOPs utilization of the last step",
             known(last.hfu));
  out.single("flopmeter_goodput_ratio",
             "gauge",
             "Time in train steps not done twice, over all time since the first start",
             known(as_number(find_step_field("goodput")->read(last))));
  out.single("flopmeter_process_memory_bytes",
             "gauge",
             "Resident memory of the process",
             known(last.memory_rss_bytes));
  out.single("flopmeter_device_memory_allocated_bytes",
             "gauge",
             "Device memory allocated",
             known(last.memory_device_bytes));
  out.single("flopmeter_device_memory_peak_bytes",
             "gauge",
             "Highest device memory allocated",
             known(last.memory_device_peak_bytes));
  out.single("flopmeter_gpu_utilization_ratio",
             "gauge",
             "Share of the last moments in which a kernel ran",
             known(last.gpu_utilization));
  out.single("flopmeter_gpu_tensor_active_ratio",
             "gauge",
             "Share of what the tensor cores can do",
             known(last.gpu_tensor_active));
  out.single("flopmeter_gpu_power_watts", "gauge", "Power drawn", known(last.gpu_power_watts));
  out.single("flopmeter_last_step_timestamp_seconds",
             "gauge",
             "When the last record ended",
             known(std::optional{last.time_unix}));
  out.single("flopmeter_dropped_records_total",
             "counter",
             "Records lost because the ring was full",
             std::to_string(last.dropped_records));
  out.single("flopmeter_failed_writes_total",
             "counter",
             "Writes that outputs reported as failed",
             std::to_string(last.failed_writes));
  return out.text();
}

}  // namespace flopmeter
