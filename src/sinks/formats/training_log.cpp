// SPDX-License-Identifier: Apache-2.0
//
// training_log.json: a JSON array with the values that a training loop logs (step, epoch, loss,
// grad_norm, learning_rate) and the performance metrics.  Always a valid array, because it is
// replaced; the longer it is, the less often.
#include "../src/output_file.h"
#include "../src/stride.h"

#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/sink.h>
#include <flopmeter/runstore/run_layout.h>

#include <chrono>

namespace flopmeter {
namespace {

constexpr std::size_t most_rows = 10'000;
constexpr std::size_t chunk_bytes = 1U << 16U;
constexpr int most_share = 50;  // rewrites take at most 1/50 of the time

struct Row {
  std::int64_t step = 0;
  std::int32_t epoch = -1;
  double time_unix = 0;
  double step_seconds = 0;
  std::optional<double> loss, grad_norm, learning_rate, mfu, tokens_per_second, samples_per_second;
};

std::optional<double> rate(const std::optional<std::int64_t>& amount, double seconds) {
  if (!amount || !(seconds > 0)) return std::nullopt;
  return static_cast<double>(*amount) / seconds;
}

std::optional<double> times(std::optional<double> value, double factor) {
  return value ? std::optional{*value * factor} : std::nullopt;
}

class TrainingLogSink final : public Sink {
 public:
  TrainingLogSink(RunContext run, std::string path)
      : run_(std::move(run)), path_(std::move(path)) {}

  Result<void> write(const StepRecord& record) override {
    const double seconds = record.step_seconds.value;
    rows_.add({record.step,
               record.epoch,
               record.time_unix,
               seconds / record.steps,
               record.loss,
               record.grad_norm,
               record.learning_rate,
               record.mfu || !run_.zero_unmeasured ? record.mfu : std::optional{0.0},
               times(rate(record.tokens, seconds), run_.data_parallel()),
               times(rate(record.samples, seconds), run_.data_parallel())});
    changed_ = true;
    return {};
  }

  Result<void> flush() override {
    const auto now = std::chrono::steady_clock::now();
    if (!changed_ && written_) return {};
    if (now < not_before_) return {};
    const auto saved = save();
    not_before_ = now + most_share * (std::chrono::steady_clock::now() - now);
    return saved;
  }
  Result<void> finish(const std::vector<Finding>& /*findings*/) override { return save(); }

 private:
  Result<void> save() {
    FileReplacement file{path_};
    std::string text = "[";
    bool first = true;
    for (const Row& row : rows_.rows()) {
      text.append(first ? "\n" : ",\n");
      first = false;
      JsonWriter json{text};
      json.begin_object()
          .field("step", row.step)
          .field("epoch", row.epoch < 0 ? std::nullopt : std::optional{row.epoch})
          .field("loss", row.loss)
          .field("grad_norm", row.grad_norm)
          .field("learning_rate", row.learning_rate)
          .field("timestamp", row.time_unix);
      json.key("perf").begin_object();
      json.field("mfu", row.mfu)
          .field("mfu_percent", times(row.mfu, 100))
          .field("step_time", row.step_seconds)
          .field("steps_per_second",
                 row.step_seconds > 0 ? std::optional{1 / row.step_seconds} : std::nullopt)
          .field("tokens_per_second", row.tokens_per_second)
          .field("samples_per_second", row.samples_per_second)
          .end_object()
          .end_object();
      if (text.size() > chunk_bytes) file.take(text);
    }
    text.append("\n]\n");
    file.take(text);
    const auto done = file.commit();
    if (done) {
      changed_ = false;
      written_ = true;
    }
    return done;
  }

  RunContext run_;
  std::string path_;
  BoundedRows<Row> rows_{most_rows};
  std::chrono::steady_clock::time_point not_before_;
  bool changed_ = false;
  bool written_ = false;
};

Result<std::unique_ptr<Sink>> make(const RunContext& run, std::string_view target) {
  std::string path = target.empty() ? RunLayout{run}.training_log() : std::string{target};
  return std::unique_ptr<Sink>{std::make_unique<TrainingLogSink>(run, std::move(path))};
}

}  // namespace

extern constinit const SinkPlugin sink_training_log{
    "training_log", "JSON array of steps with loss, learning rate, and MFU", make};

}  // namespace flopmeter
