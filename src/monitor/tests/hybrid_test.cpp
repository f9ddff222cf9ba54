// SPDX-License-Identifier: Apache-2.0
//
// Mode hybrid with counters that the test sets, with fake libraries of a GPU, and with the counters
// of this machine.
#include "../src/counter_timeline.h"
#include "support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace flopmeter {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using namespace std::chrono_literals;

/// A processor controlled by the test.
struct Processor {
  static inline std::atomic<double> flops = 0;
  static inline std::atomic<bool> broken = false;
  static void work(double amount) {
    HandClock::advance(10'000'000);
    flops = flops + amount;
  }
};

/// Sees a share of it.
class FakeCounters final : public HardwareCounters {
 public:
  static inline std::atomic<double> sees = 1;
  std::optional<CounterReading> read() override {
    if (Processor::broken) return std::nullopt;
    return CounterReading{.ns = HandClock::now_ns, .flops = Processor::flops * sees};
  }
};

/// Counts 900 FLOPs per step after it is enabled.
class TestSource final : public FlopCounter {
 public:
  [[nodiscard]] std::string_view name() const override { return "test"; }
  [[nodiscard]] FlopTotals snapshot() const override {
    FlopTotals totals;
    totals.model[static_cast<std::size_t>(Dtype::fp32)][0] = 900 * steps;
    totals.executed = totals.model;
    return totals;
  }
  void enable(bool on) override { enabled = on; }
  [[nodiscard]] double nanoseconds_per_call() const override { return 20; }
  std::uint64_t steps = 0;
  bool enabled = false;
};

struct Rig {
  TemporaryDirectory directory;
  TestSource source;
  Options options = without_console(directory);
  Connections connections;
  std::vector<std::string> logged;

  Rig() {
    HandClock::reset();
    Processor::flops = 0;
    Processor::broken = false;
    FakeCounters::sees = 1;
    options.mode = Mode::hybrid;
    options.measure_frequency = 1;
    connections.clock = HandClock::clock();
    connections.source = &source;
    connections.peaks.set(Dtype::fp32, {1e12});
    connections.peaks.set(Dtype::bf16, {1e15});
    connections.warn = [this](const std::string& text) { logged.push_back(text); };
    connections.open_counters = []() -> Result<std::unique_ptr<HardwareCounters>> {
      return std::unique_ptr<HardwareCounters>{std::make_unique<FakeCounters>()};
    };
    connections.known_work = [] {
      Processor::work(8e9);
      return Flops{8'000'000'000};
    };
  }
  Result<Monitor> start() { return Monitor::start(options, std::move(connections)); }
  void step(Monitor& monitor, double flops) {
    monitor.begin_step();
    Processor::work(flops);
    ++source.steps;
    monitor.end_step();
    while (monitor.status().written < monitor.status().steps) std::this_thread::sleep_for(1ms);
  }
};

TEST(CounterTimeline, interpolates_between_readings_and_extrapolates_after_the_last) {
  CounterTimeline timeline;
  EXPECT_EQ(timeline.between(0, 10), std::nullopt);
  timeline.add({.ns = 100, .flops = 0});
  EXPECT_EQ(timeline.between(100, 110), std::nullopt);  // one reading gives no rate
  timeline.add({.ns = 200, .flops = 1000});
  timeline.add({.ns = 200, .flops = 9999});  // no newer
  timeline.add({.ns = 300, .flops = 4000});
  EXPECT_EQ(timeline.between(100, 200), 1000);
  EXPECT_EQ(timeline.between(150, 250), 500 + 1500);
  EXPECT_EQ(timeline.between(250, 400), 1500 + 3000);  // 30 a nanosecond, as before
  EXPECT_EQ(timeline.between(50, 200), std::nullopt);  // began before the first reading
  for (int i = 4; i < 20'000; ++i) timeline.add({.ns = 100 * i, .flops = 1000.0 * i});
  EXPECT_EQ(timeline.between(100 * 19'000, 100 * 19'999), 999'000);
  EXPECT_EQ(timeline.between(100, 200), std::nullopt);  // forgotten
}

TEST(Hybrid, each_step_gets_the_flops_of_its_own_time_and_no_mfu) {
  Rig rig;
  auto monitor = rig.start();
  std::this_thread::sleep_for(50ms);  // a first reading
  for (const double flops : {1e9, 3e9, 5e8}) rig.step(*monitor, flops);
  monitor->finish();
  const auto records = read_records(rig.directory);
  ASSERT_THAT(records, SizeIs(3));
  EXPECT_EQ(records[0]["hardware_flops"], 1'000'000'000);
  EXPECT_EQ(records[1]["hardware_flops"], 3'000'000'000);
  EXPECT_EQ(records[2]["hardware_flops"], 500'000'000);
  EXPECT_NEAR(records[1]["counter_flops_per_second"].get<double>(), 3e11, 1);
  EXPECT_NEAR(records[1]["hfu"].get<double>(), 0.3, 1e-9);
  EXPECT_EQ(records[1]["hardware_flops_by_dtype"]["fp32"], 3'000'000'000);
  EXPECT_EQ(records[1]["flops_source"], "hardware");
  EXPECT_EQ(records[1]["mfu"], nullptr);
  EXPECT_EQ(records[1]["model_flops"], nullptr);
  EXPECT_EQ(records[1]["calibration_error"], 0);
  EXPECT_FALSE(rig.source.enabled);  // nothing else was counted
  EXPECT_THAT(rig.logged, SizeIs(0));
}

TEST(Hybrid, counters_are_calibrated_against_known_work) {
  Rig rig;
  FakeCounters::sees = 0.8;  // of known FLOPs, and so of all
  auto monitor = rig.start();
  std::this_thread::sleep_for(50ms);
  rig.step(*monitor, 2e9);
  monitor->finish();
  const auto records = read_records(rig.directory);
  EXPECT_NEAR(records[0]["hardware_flops"].get<double>(), 2e9, 10);
  EXPECT_NEAR(records[0]["calibration_error"].get<double>(), 0.25, 1e-6);
}

TEST(Hybrid, counters_that_do_not_see_known_work_are_not_used) {
  for (const double share : {0.0, 0.02, 3.0}) {
    Rig rig;
    FakeCounters::sees = share;
    auto monitor = rig.start();
    rig.step(*monitor, 1e9);
    monitor->finish();
    const auto records = read_records(rig.directory);
    EXPECT_EQ(records[0]["flops_source"], "counted");
    EXPECT_EQ(records[0]["model_flops"], 900);
    EXPECT_THAT(records[0]["flops_note"].get<std::string>(),
                HasSubstr(share == 0 ? "they saw nothing" : "of known matrix products they saw"));
    EXPECT_THAT(rig.logged, SizeIs(1));
  }
}

TEST(Hybrid, counters_that_fail_are_replaced_by_counting_with_the_reason) {
  Rig rig;
  auto monitor = rig.start();
  std::this_thread::sleep_for(50ms);
  rig.step(*monitor, 1e9);
  Processor::broken = true;
  rig.step(*monitor, 1e9);  // the writer notices while it writes this one
  rig.step(*monitor, 1e9);
  monitor->finish();
  const auto records = read_records(rig.directory);
  EXPECT_EQ(records[0]["flops_source"], "hardware");
  EXPECT_EQ(records[1]["flops_source"], "none");
  EXPECT_EQ(records[1]["flops_note"], "hardware counters failed");
  EXPECT_EQ(records[2]["flops_source"], "counted");
  EXPECT_EQ(records[2]["flops_note"], "hardware counters failed");
}

TEST(Hybrid, without_counters_it_counts_and_logs_why) {
  Rig rig;
  rig.options.measure_frequency = 2;
  rig.connections.open_counters = []() -> Result<std::unique_ptr<HardwareCounters>> {
    return Error{ErrorCode::unsupported, "no hardware counters: not permitted"};
  };
  auto monitor = rig.start();
  for (int i = 0; i < 3; ++i) rig.step(*monitor, 1e9);
  monitor->finish();
  const auto records = read_records(rig.directory);
  EXPECT_EQ(records[0]["flops_source"], "counted");
  EXPECT_EQ(records[1]["flops_source"], "none");
  EXPECT_EQ(records[2]["flops_source"], "counted");
  for (const Json& record : records)
    EXPECT_EQ(record["flops_note"], "no hardware counters: not permitted");
  ASSERT_THAT(rig.logged, SizeIs(1));
  EXPECT_EQ(rig.logged[0], "no hardware counters: not permitted; FLOPs are counted instead");
}

GpuRequest fake_gpu(const std::string& name) {
  return {
      .uuid = "GPU-fake",
      .nvml = std::string{FLOPMETER_FAKE_GPU_LIBRARIES} + "/libflopmeter_fake_nvml_" + name + ".so",
      .dcgm = "absent",
      .interval = 5ms,
      .patience = 200ms};
}

TEST(Hybrid, a_gpu_counts_by_the_activity_of_its_tensor_cores) {
  Rig rig;
  rig.connections.clock = {};
  rig.connections.dtype = Dtype::bf16;
  rig.connections.gpu = fake_gpu("whole");  // half of 1 PFLOP/s, all the time
  rig.connections.known_work = [] {
    const auto start = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(100ms);
    return Flops{static_cast<WideInt>(
        0.5e15 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count())};
  };
  auto monitor = rig.start();
  ASSERT_TRUE(monitor);
  monitor->begin_step();
  std::this_thread::sleep_for(100ms);
  monitor->end_step();
  monitor->finish();
  const auto records = read_records(rig.directory);
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0]["flops_source"], "hardware") << records[0];
  // The readings around the known work begin and end some milliseconds from it.
  EXPECT_NEAR(records[0]["hfu"].get<double>(), 0.5, 0.25);
  EXPECT_EQ(records[0]["gpu"]["tensor_active"], 0.5);
  EXPECT_EQ(records[0]["gpu"]["power_watts"], 650.5);
  EXPECT_EQ(records[0]["gpu"]["throttle_reasons"], 4);
  EXPECT_GT(records[0]["hardware_flops_by_dtype"]["bf16"].get<double>(), 0);
}

TEST(Hybrid, a_gpu_whose_driver_hangs_delays_nothing) {
  for (const std::string name : {"hangs", "hangs_at_start"}) {
    Rig rig;
    rig.connections.clock = {};
    rig.connections.dtype = Dtype::bf16;
    rig.connections.gpu = fake_gpu(name);
    const auto start = std::chrono::steady_clock::now();
    auto monitor = rig.start();
    ASSERT_TRUE(monitor);
    rig.step(*monitor, 1e9);
    std::this_thread::sleep_for(300ms);
    rig.step(*monitor, 1e9);
    monitor->finish();
    EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
    const auto records = read_records(rig.directory);
    ASSERT_THAT(records, SizeIs(2));
    EXPECT_EQ(records[1]["flops_source"], "counted");
    EXPECT_FALSE(records[1]["flops_note"].get<std::string>().empty());
    EXPECT_TRUE(records[1]["gpu"].empty());
    EXPECT_GE(rig.logged.size(), 1U);
  }
}

TEST(Hybrid, gpu_metrics_are_recorded_in_every_mode_and_can_be_disabled) {
  for (const bool on : {true, false}) {
    Rig rig;
    rig.connections.clock = {};
    rig.options.mode = Mode::automatic;
    rig.options.gpu_metrics = on;
    rig.connections.gpu = fake_gpu("whole");
    auto monitor = rig.start();
    std::this_thread::sleep_for(200ms);
    rig.step(*monitor, 1);
    monitor->finish();
    const auto records = read_records(rig.directory);
    ASSERT_THAT(records, SizeIs(1));
    EXPECT_EQ(records[0]["gpu"].empty(), !on);
    EXPECT_FALSE(records[0]["gpu"].contains("tensor_active"));  // counters only in mode hybrid
  }
}

TEST(Hybrid, this_machine_either_counts_flops_in_hardware_or_reports_why_not) {
  auto counters = open_cpu_flop_counters();
  if (!counters) {
    EXPECT_THAT(counters.error().message, HasSubstr("no hardware counters: "));
    return;
  }
  const auto factor = calibrate(**counters, multiply_matrices);
  ASSERT_TRUE(factor) << factor.error().message;
  EXPECT_NEAR(*factor, 1, 0.1);
}

}  // namespace
}  // namespace flopmeter
