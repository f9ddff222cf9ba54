// SPDX-License-Identifier: Apache-2.0
//
// perf_summary_<stamp>.json: the summary of FlagScale with its keys first.  Replaced every minute
// and at the end, so that a reader sees a complete file.
#include "../src/interval_rows.h"
#include "../src/output_file.h"
#include "../src/stride.h"

#include <flopmeter/core/json_writer.h>
#include <flopmeter/runstore/run_layout.h>

#include <algorithm>
#include <chrono>

namespace flopmeter {
namespace {

constexpr std::size_t most_rows = 10'000;
constexpr std::size_t chunk_bytes = 1U << 16U;
constexpr std::chrono::seconds rewrite_interval{60};

/// Least and greatest value of the rows.
struct Span {
  std::optional<double> least, greatest;
  void add(std::optional<double> value) {
    if (!value) return;
    least = std::min(least.value_or(*value), *value);
    greatest = std::max(greatest.value_or(*value), *value);
  }
};

/// The part of a row that the summary keeps.
struct Row {
  std::int64_t step = 0;
  double time_unix = 0;
  FlopsProvenance flops_source = FlopsProvenance::none;
  double step_seconds = 0;
  std::optional<double> tflops_per_device, tflops_total, samples_per_second, tokens_per_second;
  std::optional<double> memory_gb, memory_peak_gb, mfu, hfu, loss;
  std::array<std::optional<Seconds>, phase_count> phases{};
};

class PerfSummarySink final : public Sink {
 public:
  /// An empty path: the name of the layout, or the next one that no other program has taken.
  PerfSummarySink(const RunContext& run, std::string path)
      : run_(run), path_(std::move(path)), intervals_(run) {}

  Result<void> write(const StepRecord& record) override {
    last_ = record;
    totals_.add(record);
    if (is_step(record.tag)) steps_ += record.steps;
    if (record.tag == StepTag::train) {
      means_.add(record);
      step_ms_.add(record.step_seconds.value * 1e3 / record.steps);
      total_factor_ = total_factor(run_, record);
    }
    if (const auto row = intervals_.add(record)) keep(*row);
    return {};
  }

  Result<void> flush() override {
    const auto now = std::chrono::steady_clock::now();
    if (written_ && now - *written_ < rewrite_interval) return {};
    written_ = now;
    return save({});
  }

  Result<void> finish(const std::vector<Finding>& findings) override {
    if (const auto row = intervals_.rest()) keep(*row);
    return save(findings);
  }

 private:
  void keep(const IntervalRow& row) {
    tflops_.add(row.tflops_per_device);
    memory_.add(row.memory_peak_gb ? row.memory_peak_gb : row.memory_gb);
    rows_.add({row.last.step,
               row.last.time_unix,
               row.last.flops_source,
               row.step_seconds.value,
               row.tflops_per_device,
               row.tflops_total,
               row.samples_per_second,
               row.tokens_per_second,
               row.memory_gb,
               row.memory_peak_gb,
               row.mfu,
               row.hfu,
               row.last.loss,
               row.phases});
  }

  void write_row(JsonWriter& json, const Row& row) const {
    json.begin_object()
        .field("iteration", row.step)
        .field("TFLOPS_per_GPU", row.tflops_per_device)
        .field("TFLOPS_total", row.tflops_total)
        .field("samples_per_sec", row.samples_per_second)
        .field("tokens_per_sec", row.tokens_per_second)
        .field("step_time_ms", row.step_seconds * 1e3)
        .field("memory_gb", row.memory_gb)
        .field("peak_memory_gb", row.memory_peak_gb)
        .field("memory_GB", row.memory_gb)
        .field("peak_memory_GB", row.memory_peak_gb)
        .field("timestamp", local_time(row.time_unix, 'T'))
        .field("mfu", row.mfu)
        .field("hfu", row.hfu)
        .field("flops_source", to_string(row.flops_source))
        .field("loss", row.loss);
    if (run_.breakdown) {
      json.key("phases").begin_object();
      for (std::size_t i = 0; i < phase_count; ++i) {
        if (row.phases[i]) json.field(to_string(static_cast<Phase>(i)), *row.phases[i]);
      }
      json.end_object();
    }
    json.end_object();
  }

  Result<void> save(const std::vector<Finding>& findings) {
    if (path_.empty()) {
      auto name = claim_name(RunLayout{run_}.perf_summary());
      if (!name) return name.error();
      path_ = *std::move(name);
    }
    FileReplacement file{path_};
    std::string text;
    JsonWriter json{text, 2};
    json.begin_object().key("session_info").begin_object();
    json.field("start_time", run_.metadata.stamp)
        .field("end_time", last_ ? std::optional{local_time(last_->time_unix, 'T')} : std::nullopt)
        .field("total_iterations", steps_)
        .field("schema", "flopmeter.summary/1")
        .field("run_id", run_.metadata.run_id)
        .field("model", run_.metadata.model)
        .field("convention", run_.metadata.convention)
        .field("device", run_.metadata.peaks.device)
        .field("peak_source", run_.metadata.peaks.source)
        .field("world_size", run_.world_size())
        .field("log_interval", run_.log_interval())
        .end_object();
    const auto average = totals_.flops_per_second();
    json.key("final_statistics").begin_object();
    json.field("avg_tflops_per_gpu", average ? std::optional{*average * 1e-12} : std::nullopt)
        .field("max_tflops_per_gpu", tflops_.greatest)
        .field("min_tflops_per_gpu", tflops_.least)
        .field("avg_throughput_tokens", tokens_total())
        .field("avg_tflops_total", times(average, total_factor_, 1e-12))
        .field("avg_step_time_ms", times(average_seconds(), 1.0, 1e3))
        .field("min_step_time_ms", step_ms_.least)
        .field("max_step_time_ms", step_ms_.greatest)
        .field("peak_memory_gb", memory_.greatest)
        .field("mfu", totals_.mfu())
        .field("goodput", totals_.goodput())
        .field("dropped_records", last_ ? last_->dropped_records : 0)
        .end_object();
    write_means(json);
    json.key("iteration_logs").begin_array();
    for (const Row& row : rows_.rows()) {
      write_row(json, row);
      if (text.size() > chunk_bytes) file.take(text);
    }
    json.end_array().field("iteration_logs_stride", rows_.stride());
    json.key("findings").begin_array();
    for (const Finding& finding : findings) write_json(json, finding);
    json.end_array().end_object();
    text.push_back('\n');
    file.take(text);
    return file.commit();
  }

  /// Every known number of the field table, combined over the train steps of the run.
  void write_means(JsonWriter& json) const {
    json.key("fields").begin_object();
    const auto fields = step_fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (const auto mean = means_.mean(i)) json.field(full_name(fields[i]), *mean);
    }
    json.end_object();
  }

  [[nodiscard]] std::optional<double> tokens_total() const {
    const auto rate = totals_.tokens_per_second();
    return rate ? std::optional{*rate * run_.data_parallel()} : std::nullopt;
  }

  [[nodiscard]] std::optional<double> average_seconds() const {
    const auto seconds = totals_.step_seconds();
    return seconds ? std::optional{seconds->value} : std::nullopt;
  }

  static std::optional<double> times(std::optional<double> value,
                                     std::optional<double> factor,
                                     double scale) {
    return value && factor ? std::optional{*value * *factor * scale} : std::nullopt;
  }

  RunContext run_;
  std::string path_;
  IntervalRows intervals_;
  BoundedRows<Row> rows_{most_rows};
  Span tflops_, memory_, step_ms_;
  std::int64_t steps_ = 0;  ///< of all kinds
  std::optional<double> total_factor_;
  FieldMeans means_;
  StepTotals totals_;
  std::optional<StepRecord> last_;
  std::optional<std::chrono::steady_clock::time_point> written_;
};

Result<std::unique_ptr<Sink>> make(const RunContext& run, std::string_view target) {
  return std::unique_ptr<Sink>{std::make_unique<PerfSummarySink>(run, std::string{target})};
}

}  // namespace

extern constinit const SinkPlugin sink_perf_summary{
    "perf_summary", "JSON summary, replaced every minute and at the end", make};

}  // namespace flopmeter
