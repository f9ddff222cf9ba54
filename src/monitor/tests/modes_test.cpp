// SPDX-License-Identifier: Apache-2.0
#include "support.h"

#include <flopmeter/monitor/monitor.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

namespace flopmeter {
namespace {

using testing::HasSubstr;

/// Counts the work that the test specifies.
class TestSource final : public FlopCounter {
 public:
  [[nodiscard]] std::string_view name() const override { return "test"; }
  [[nodiscard]] FlopTotals snapshot() const override { return totals_; }
  void enable(bool on) override {
    enabled_ = on;
    ++switches_;
  }
  [[nodiscard]] double nanoseconds_per_call() const override { return ns_per_call; }

  void work(std::uint64_t forward, std::uint64_t calls = 10) {
    if (!enabled_) return;
    auto& bf16 = totals_.executed[static_cast<std::size_t>(Dtype::bf16)];
    bf16[0] += forward;
    bf16[1] += 2 * forward;
    bf16[2] += forward;  // recomputed once
    auto& model = totals_.model[static_cast<std::size_t>(Dtype::bf16)];
    model[0] += forward;
    model[1] += 2 * forward;
    totals_.calls += calls;
    totals_.attention_calls[static_cast<std::size_t>(AttentionPairs::exact)] += 1;
  }
  double ns_per_call = 20;

 private:
  FlopTotals totals_;
  bool enabled_ = false;
  int switches_ = 0;
};

/// 6 N T plus attention, times a factor that makes it wrong on purpose.
class TestEstimator final : public FlopEstimator {
 public:
  explicit TestEstimator(double factor = 1, double head = 0) : factor_(factor), head_(head) {}
  [[nodiscard]] std::optional<FlopEstimate> estimate(const Batch& shape) const override {
    FlopEstimate flops;
    std::uint64_t model = 0;
    for (const auto& group : shape.sequences)
      model += static_cast<std::uint64_t>(group.count) * forward_of(group.length) * 3;
    model = static_cast<std::uint64_t>(static_cast<double>(model) * factor_);
    flops.model[static_cast<std::size_t>(Dtype::bf16)] = model;
    flops.hardware[static_cast<std::size_t>(Dtype::bf16)] = model / 3 * 4;
    flops.recompute = model / 3;
    flops.lm_head = static_cast<std::uint64_t>(static_cast<double>(model / 3 * 4) * head_);
    return flops;
  }
  [[nodiscard]] std::string_view convention() const override { return "test"; }
  static std::uint64_t forward_of(std::int64_t length) {
    return static_cast<std::uint64_t>(length) * 2'000'000 +
           static_cast<std::uint64_t>(length * length) * 512;
  }

 private:
  double factor_;
  double head_;
};

/// A loop with a source, an estimator, and a manual clock.
struct Rig {
  TemporaryDirectory directory;
  TestSource source;
  TestEstimator estimator;
  Options options = without_console(directory);
  bool with_estimator = true;
  World world;
  ModelFlops model_flops = ModelFlops::count;
  std::string convention = "model-v1";

  Rig() { HandClock::reset(); }

  Result<Monitor> start(FlopEstimator* other = nullptr) {
    Connections connections;
    connections.clock = HandClock::clock();
    connections.source = &source;
    if (with_estimator) connections.estimator = other != nullptr ? other : &estimator;
    connections.peaks.set(Dtype::bf16, {1e12});
    connections.world = world;
    connections.model_flops = model_flops;
    connections.convention = convention;
    return Monitor::start(options, std::move(connections));
  }
  void step(Monitor& monitor, std::int64_t batch = 4, std::int64_t length = 128, double scale = 1) {
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(batch), length);
    monitor.begin_step({.sequence_lengths = lengths});
    source.work(static_cast<std::uint64_t>(static_cast<double>(batch) *
                                           static_cast<double>(TestEstimator::forward_of(length)) *
                                           scale));
    HandClock::advance(10'000'000);
    monitor.end_step();
  }
  std::vector<Json> records() { return read_records(directory); }
};

/// Waits until the writing thread has seen all steps, as a real loop's step time would let it.
void settle(const Monitor& monitor) {
  while (monitor.status().written < monitor.status().steps)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

TEST(Modes, auto_counts_every_step_and_mfu_excludes_recomputation) {
  Rig run;
  {
    auto monitor = run.start();
    for (int i = 0; i < 40; ++i) run.step(*monitor);
  }
  const auto records = run.records();
  ASSERT_EQ(records.size(), 40U);
  const std::uint64_t forward = 4 * TestEstimator::forward_of(128);
  for (const Json& record : records) {
    EXPECT_EQ(record["flops_source"], "counted");
    EXPECT_EQ(record["model_flops"].get<std::uint64_t>(), 3 * forward);
    EXPECT_EQ(record["hardware_flops"].get<std::uint64_t>(), 4 * forward);
    EXPECT_EQ(record["recompute_flops"].get<std::uint64_t>(), forward);
    EXPECT_EQ(record["estimated_flops"].get<std::uint64_t>(), 3 * forward);
    EXPECT_EQ(record["attention_pairs"], "exact");
    EXPECT_NEAR(
        record["mfu"].get<double>(), 3.0 * static_cast<double>(forward) / 1e12 / 0.01, 1e-9);
  }
}

TEST(Modes, auto_backs_off_to_smart_when_counting_passes_the_budget) {
  Rig run;
  run.source.ns_per_call = 100'000;  // ten calls: a tenth of the step
  {
    auto monitor = run.start();
    for (int i = 0; i < 200; ++i) run.step(*monitor);
    EXPECT_LT(monitor->status().measurements, 60U);
  }
  const auto records = run.records();
  EXPECT_EQ(records[0]["flops_source"], "counted");
  EXPECT_NEAR(records[0]["monitor_seconds"].get<double>(), 1e-3, 1e-4);
  EXPECT_EQ(records[150]["flops_source"], "calibrated");
  EXPECT_EQ(records[150]["model_flops"], records[0]["model_flops"]);
  EXPECT_EQ(records[150]["flops_note"], "counting every step exceeded the budget");
}

TEST(Modes, profiler_counts_every_n_process_steps_and_leaves_the_rest_empty) {
  Rig run;
  run.options.mode = Mode::profiler;
  run.options.measure_frequency = 50;
  {
    auto monitor = run.start();
    for (int i = 0; i < 120; ++i) run.step(*monitor);
    EXPECT_EQ(monitor->status().measurements, 3U);
  }
  const auto records = run.records();
  EXPECT_EQ(records[0]["flops_source"], "counted");  // step 0 is measured
  EXPECT_EQ(records[50]["flops_source"], "counted");
  EXPECT_EQ(records[49]["flops_source"], "none");
  EXPECT_EQ(records[49]["mfu"], nullptr);
}

TEST(Modes, the_training_phase_picks_the_frequency) {
  Rig run;
  run.options.mode = Mode::profiler;
  run.options.finetune_frequency = 20;
  run.options.warmup_frequency = 100;
  {
    auto monitor = run.start();
    monitor->set_training_phase(TrainingPhase::warmup);
    for (int i = 0; i < 101; ++i) run.step(*monitor);
    EXPECT_EQ(monitor->status().measurements, 2U);  // steps 0 and 100
    monitor->set_training_phase(TrainingPhase::finetune);
    for (int i = 0; i < 40; ++i) run.step(*monitor);
    EXPECT_EQ(monitor->status().measurements, 4U);  // and 120 and 140
  }
}

TEST(Modes, frequency_zero_never_counts) {
  Rig run;
  run.options.mode = Mode::profiler;
  run.options.measure_frequency = 0;
  auto monitor = run.start();
  for (int i = 0; i < 20; ++i) run.step(*monitor);
  EXPECT_EQ(monitor->status().measurements, 0U);
}

TEST(Modes, estimate_never_counts) {
  Rig run;
  run.options.mode = Mode::estimate;
  {
    auto monitor = run.start();
    for (int i = 0; i < 20; ++i) run.step(*monitor);
    EXPECT_EQ(monitor->status().measurements, 0U);
  }
  EXPECT_EQ(run.records()[7]["flops_source"], "estimate");
  EXPECT_EQ(run.records()[7]["model_flops"].get<std::uint64_t>(),
            12 * TestEstimator::forward_of(128));
}

TEST(Modes, ranks_that_share_their_samples_estimate_a_share_each) {
  for (const Mode mode : {Mode::estimate, Mode::automatic}) {
    Rig run;
    run.options.mode = mode;
    run.world = {.size = 8, .tensor_parallel = 2, .pipeline_parallel = 2};
    {
      auto monitor = run.start();
      run.step(*monitor, 4, 128, 0.25);  // and execute no more than that
      EXPECT_EQ(monitor->status().measurements, mode == Mode::estimate ? 0U : 1U);
    }
    const Json record = run.records()[0];
    EXPECT_EQ(record["flops_source"], mode == Mode::estimate ? "estimate" : "counted");
    EXPECT_EQ(record["model_flops"], 3 * TestEstimator::forward_of(128));
    EXPECT_EQ(record["estimated_flops"], 3 * TestEstimator::forward_of(128));
  }
}

TEST(Modes, smart_calibrates_and_counts_again_every_n_steps) {
  Rig run;
  TestEstimator wrong{0.8};
  run.options.mode = Mode::smart;
  run.options.recalibration_frequency = 100;
  {
    auto monitor = run.start(&wrong);
    for (int i = 0; i < 250; ++i) run.step(*monitor);
    EXPECT_EQ(monitor->status().measurements, 3U);
  }
  const auto records = run.records();
  EXPECT_EQ(records[0]["flops_source"], "counted");
  EXPECT_NEAR(records[0]["calibration_error"].get<double>(), 0.25, 1e-6);
  EXPECT_EQ(records[60]["flops_source"], "calibrated");
  EXPECT_EQ(records[60]["calibration_age"], 60);
  EXPECT_EQ(records[60]["model_flops"], records[0]["model_flops"]);
  EXPECT_EQ(records[100]["flops_source"], "counted");
}

/// 2000 steps over more than 200 shapes: the sum of FLOPs against always counting.
double smart_error(Rig& run, std::uint64_t& measurements) {
  run.options.mode = Mode::smart;
  double truth = 0;
  std::mt19937 random{7};  // NOLINT(cert-msc32-c): the same shapes every time
  {
    auto monitor = run.start();
    for (int i = 0; i < 2000; ++i) {
      const auto length = static_cast<std::int64_t>(32 + 16 * (random() % 64));
      const auto batch = static_cast<std::int64_t>(1 + random() % 8);
      truth +=
          3.0 * static_cast<double>(batch) * static_cast<double>(TestEstimator::forward_of(length));
      run.step(*monitor, batch, length);
      if (i < 300 || i % 50 == 0) settle(*monitor);  // or a slow writer drops records
    }
    measurements = monitor->status().measurements;
  }
  double sum = 0;
  for (const Json& record : run.records())
    sum += record["model_flops"].is_null() ? 0 : record["model_flops"].get<double>();
  return std::abs(sum / truth - 1);
}

TEST(Modes, smart_over_hundreds_of_shapes_is_within_a_thousandth_with_a_few_counts) {
  Rig run;
  std::uint64_t measurements = 0;
  EXPECT_LT(smart_error(run, measurements), 1e-3);
  EXPECT_LE(measurements, 20U);
}

TEST(Modes, smart_learns_the_shapes_without_a_model_configuration) {
  Rig run;
  run.with_estimator = false;
  std::uint64_t measurements = 0;
  // The first few shapes pass before the fit is determined, so the sum may miss those steps.
  EXPECT_LT(smart_error(run, measurements), 0.05);
  EXPECT_LE(measurements, 20U);
  const auto records = run.records();
  int known = 0;
  for (std::size_t i = 200; i < records.size(); ++i)
    known += records[i]["flops_source"] == "calibrated" ? 1 : 0;
  EXPECT_GT(known, 1700);
}

TEST(Modes, an_evaluation_has_no_flops_of_training_even_without_a_known_batch) {
  Rig run;
  run.options.mode = Mode::smart;
  {
    auto monitor = run.start();
    for (int i = 0; i < 2; ++i) {
      monitor->begin_step({});
      run.source.work(1000);
      monitor->end_step();
      settle(*monitor);
    }
    monitor->begin_phase(Phase::evaluation);
    monitor->end_phase(Phase::evaluation);
  }
  const auto records = run.records();
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[1]["flops_source"], "calibrated");
  EXPECT_TRUE(records[2]["model_flops"].is_null());
}

TEST(Modes, batches_with_known_samples_only_are_distinguished_by_their_samples) {
  Rig run;
  run.with_estimator = false;
  run.options.mode = Mode::smart;
  {
    auto monitor = run.start();
    for (const int samples : {16, 16, 3, 16, 3}) {
      monitor->begin_step({.samples = samples});
      run.source.work(static_cast<std::uint64_t>(samples) * 100);
      monitor->end_step();
      settle(*monitor);
    }
  }
  for (const Json& record : run.records()) {
    if (record["model_flops"].is_null()) continue;
    EXPECT_EQ(record["model_flops"], 300 * record["samples"].get<int>());
  }
  EXPECT_EQ(run.records()[1]["flops_source"], "calibrated");
}

TEST(Modes, work_between_steps_belongs_to_the_next_step_as_its_time_does) {
  Rig run;
  {
    auto monitor = run.start();
    for (const Phase early : {Phase::data, Phase::other}) {
      monitor->begin_phase(early);
      run.source.work(1000);  // for example, a teacher's forward
      monitor->end_phase(early);
      run.step(*monitor);
      run.source.work(1000);  // outside any step
    }
  }
  const auto records = run.records();
  ASSERT_EQ(records.size(), 2U);
  for (const Json& record : records)
    EXPECT_EQ(record["model_flops"], 3 * (4 * TestEstimator::forward_of(128) + 1000));
}

TEST(Modes, drift_is_noticed_and_invalidates_measurements) {
  Rig run;
  run.options.mode = Mode::smart;
  run.options.recalibration_frequency = 50;
  {
    auto monitor = run.start();
    for (int i = 0; i < 49; ++i) run.step(*monitor);
    settle(*monitor);
    for (int i = 0; i < 5; ++i) {
      run.step(*monitor, 4, 128, 1.5);  // more work for the same shape: other parameters train
      settle(*monitor);
    }
  }
  const auto records = run.records();
  EXPECT_THAT(records[50]["flops_note"].get<std::string>(), HasSubstr("drift"));
  EXPECT_EQ(records[51]["flops_source"], "counted");
  EXPECT_EQ(records[53]["flops_source"], "calibrated");
  EXPECT_EQ(records[53]["model_flops"], records[51]["model_flops"]);
}

TEST(Modes, model_changed_measures_at_once) {
  Rig run;
  run.options.mode = Mode::smart;
  auto monitor = run.start();
  for (int i = 0; i < 10; ++i) run.step(*monitor);
  EXPECT_EQ(monitor->status().measurements, 1U);
  monitor->model_changed();
  run.step(*monitor);
  EXPECT_EQ(monitor->status().measurements, 2U);
}

TEST(Modes, a_count_under_half_of_the_estimate_shows_the_estimate_and_why) {
  Rig run;
  TestEstimator more{2.5};
  {
    auto monitor = run.start(&more);
    for (int i = 0; i < 3; ++i) run.step(*monitor);
  }
  const auto records = run.records();
  EXPECT_EQ(records[2]["flops_source"], "estimate");
  EXPECT_THAT(records[2]["flops_note"].get<std::string>(), HasSubstr("below half of the estimate"));
  EXPECT_EQ(records[2]["model_flops"].get<double>(),
            2.5 * records[2]["counted_flops"].get<double>());
}

TEST(Modes, a_count_is_labeled_with_its_own_convention) {
  Rig run;
  run.convention = "megatron";
  {
    auto monitor = run.start();
    run.step(*monitor);
  }
  EXPECT_EQ(run.records()[0]["flops_source"], "counted");
  EXPECT_EQ(run.records()[0]["convention"], "model-v1");
}

TEST(Modes, model_flops_of_the_estimate_go_with_hardware_flops_of_the_count) {
  Rig run;
  run.model_flops = ModelFlops::estimate;
  run.convention = "megatron";
  TestEstimator less{0.75};
  {
    auto monitor = run.start(&less);
    run.step(*monitor);
  }
  const Json record = run.records()[0];
  const std::uint64_t forward = 4 * TestEstimator::forward_of(128);
  EXPECT_EQ(record["flops_source"], "estimate");
  EXPECT_EQ(record["convention"], "megatron");
  EXPECT_EQ(record["model_flops"].get<std::uint64_t>(), 3 * forward * 3 / 4);
  EXPECT_EQ(record["hardware_flops"].get<std::uint64_t>(), 4 * forward);
  EXPECT_EQ(record["recompute_flops"].get<std::uint64_t>(), forward);
}

TEST(Modes, hardware_flops_of_hidden_kernels_come_from_the_estimate) {
  Rig run;
  run.model_flops = ModelFlops::estimate;
  TestEstimator more{2.5};
  {
    auto monitor = run.start(&more);
    run.step(*monitor);
  }
  const Json record = run.records()[0];
  EXPECT_THAT(record["flops_note"].get<std::string>(), HasSubstr("below half of the estimate"));
  EXPECT_GT(record["hardware_flops"].get<double>(), record["model_flops"].get<double>());
  EXPECT_EQ(record["model_flops"].get<double>(), 2.5 * record["counted_flops"].get<double>());
}

TEST(Modes, a_stage_without_the_lm_head_hides_no_kernels) {
  for (const int stages : {1, 2}) {
    Rig run;
    run.model_flops = ModelFlops::estimate;
    run.world = {.size = stages, .pipeline_parallel = stages};
    TestEstimator more{5.0, 0.8};
    {
      auto monitor = run.start(&more);
      run.step(*monitor);
    }
    const Json record = run.records()[0];
    EXPECT_EQ(record["flops_note"].is_null(), stages == 2);
    EXPECT_EQ(record["counted_flops"].is_null(), stages == 2);
  }
}

TEST(Modes, model_flops_of_a_framework_go_with_hardware_flops_of_the_count) {
  for (const WideInt stated : {WideInt{1'000'000}, WideInt{1'000'000'000'000'000}}) {
    Rig run;
    run.model_flops = ModelFlops::framework;
    {
      auto monitor = run.start();
      monitor->begin_step({.samples = 2, .flops = Flops{stated}});
      run.source.work(1'000'000);
      monitor->end_step();
    }
    const Json record = run.records()[0];
    EXPECT_EQ(record["flops_source"], "framework");
    EXPECT_EQ(record["model_flops"].get<std::int64_t>(), static_cast<std::int64_t>(stated));
    EXPECT_EQ(record["counted_flops"].get<std::int64_t>(), 3'000'000);
    EXPECT_EQ(record["hardware_flops"].is_null(), stated > 6'000'000);
  }
}

TEST(Modes, a_batch_that_is_known_at_the_end_replaces_the_one_before) {
  Rig run;
  {
    auto monitor = run.start();
    monitor->begin_step({.samples = 2, .tokens = 256});
    monitor->micro_batch({.samples = 2, .tokens = 256});
    run.source.work(1'000'000);
    const StepInput batch{.samples = 4, .tokens = 300};
    monitor->end_step({.loss = 1.5, .batch = &batch});
  }
  const Json record = run.records()[0];
  EXPECT_EQ(record["samples"], 4);
  EXPECT_EQ(record["tokens"], 300);
  EXPECT_EQ(record["micro_batches"], 2);
  EXPECT_EQ(record["loss"], 1.5);
}

TEST(Modes, more_shapes_than_fit_leave_no_estimate_but_a_count) {
  Rig run;
  run.options.mode = Mode::estimate;
  {
    auto monitor = run.start();
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 1; i <= 500; ++i) lengths.push_back(i);
    monitor->begin_step({.sequence_lengths = lengths});
    monitor->end_step();
  }
  EXPECT_EQ(run.records()[0]["flops_source"], "none");
  EXPECT_EQ(run.records()[0]["tokens"], 125250);
}

}  // namespace
}  // namespace flopmeter
