// SPDX-License-Identifier: Apache-2.0
#include "support.h"

#include <flopmeter/monitor/monitor.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

namespace flopmeter {
namespace {

using testing::HasSubstr;

std::int64_t nanoseconds(const Json& seconds) {
  return std::llround(seconds.get<double>() * 1e9);
}

TEST(Monitor, nested_phases_sum_to_the_step_to_the_nanosecond) {
  TemporaryDirectory directory;
  {
    auto monitor = Monitor::start(without_console(directory));
    ASSERT_TRUE(monitor) << monitor.error().message;
    for (int i = 0; i < 50; ++i) {
      auto step = monitor->step({.samples = 8, .tokens = 8192});
      { auto data = step.phase(Phase::data); }
      {
        auto backward = step.phase(Phase::backward);
        auto inner = step.phase(Phase::communication);
      }
    }
  }
  const auto records = read_records(directory);
  ASSERT_EQ(records.size(), 50U);
  for (const Json& record : records) {
    std::int64_t sum = 0;
    for (const auto& [name, value] : record["phases"].items()) sum += nanoseconds(value);
    EXPECT_EQ(sum, nanoseconds(record["step_seconds"]));
    EXPECT_EQ(record["phases"].size(), 4U);  // data, backward, communication, other
  }
}

TEST(Monitor, a_step_that_the_caller_timed_has_the_callers_time) {
  TemporaryDirectory directory;
  {
    auto monitor = Monitor::start(without_console(directory), on_hand_clock());
    monitor->begin_phase(Phase::other);
    HandClock::advance(100);
    monitor->begin_step({.step = 1});
    monitor->end_step({.interval = {{1'010, 1'040}}});
    monitor->begin_step();
    HandClock::advance(7);
    monitor->end_step();
    EXPECT_EQ(monitor->status().misuse, 0U);
  }
  const auto records = read_records(directory);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(nanoseconds(records[0]["step_seconds"]), 30);
  EXPECT_EQ(nanoseconds(records[1]["step_seconds"]), 67);
  EXPECT_EQ(nanoseconds(records[1]["inter_step_seconds"]), 60);
}

TEST(Monitor, a_handmade_clock_gives_each_phase_its_own_time) {
  TemporaryDirectory directory;
  {
    auto monitor = Monitor::start(without_console(directory), on_hand_clock());
    monitor->begin_phase(Phase::data);  // before the step: part of it
    HandClock::advance(5);
    monitor->end_phase(Phase::data);
    monitor->begin_step({.samples = 2, .tokens = 20, .step = 7});
    monitor->begin_phase(Phase::forward);
    HandClock::advance(10);
    monitor->begin_phase(Phase::communication);
    HandClock::advance(3);
    monitor->end_phase(Phase::communication);
    HandClock::advance(1);
    monitor->end_phase(Phase::forward);
    HandClock::advance(2);
    monitor->end_step({.loss = 1.5});
    HandClock::advance(4);
    monitor->begin_phase(Phase::evaluation);  // outside a step: a separate record
    HandClock::advance(100);
    monitor->end_phase(Phase::evaluation);
  }
  const auto records = read_records(directory);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(nanoseconds(records[0]["step_seconds"]), 21);
  EXPECT_EQ(nanoseconds(records[0]["phases"]["data"]), 5);
  EXPECT_EQ(nanoseconds(records[0]["phases"]["forward"]), 11);
  EXPECT_EQ(nanoseconds(records[0]["phases"]["communication"]), 3);
  EXPECT_EQ(nanoseconds(records[0]["phases"]["other"]), 2);
  EXPECT_EQ(records[0]["step"], 7);
  EXPECT_EQ(records[0]["loss"], 1.5);
  EXPECT_EQ(records[1]["tag"], "evaluation");
  EXPECT_EQ(nanoseconds(records[1]["step_seconds"]), 100);
  EXPECT_EQ(nanoseconds(records[1]["inter_step_seconds"]), 4);
  EXPECT_EQ(read_summary(directory)["final_statistics"]["mfu"], nullptr);
}

TEST(Monitor, micro_batches_are_summed_and_tokens_come_from_lengths) {
  TemporaryDirectory directory;
  {
    auto monitor = Monitor::start(without_console(directory));
    const std::int64_t lengths[] = {5, 7, 7};
    const ImageGrid grids[] = {{1, 4, 6}};
    monitor->begin_step();
    for (int micro = 0; micro < 4; ++micro) {
      monitor->micro_batch(
          {.visual_tokens = 6, .sequence_lengths = lengths, .padded_length = 8, .images = grids});
    }
    monitor->end_step();
  }
  const auto records = read_records(directory);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0]["micro_batches"], 4);
  EXPECT_EQ(records[0]["samples"], 12);
  EXPECT_EQ(records[0]["tokens"], 76);
  EXPECT_EQ(records[0]["padded_tokens"], 96);
  EXPECT_EQ(records[0]["visual_tokens"], 24);
  EXPECT_EQ(records[0]["mfu"], nullptr);
  EXPECT_EQ(records[0]["flops_source"], "none");
}

TEST(Monitor, steps_sum_to_wall_time_and_phases_to_the_step) {
  TemporaryDirectory directory;
  {
    auto monitor = Monitor::start(without_console(directory), on_hand_clock());
    for (int i = 0; i < 3; ++i) {
      monitor->begin_step();
      monitor->begin_phase(Phase::forward);
      HandClock::advance(10);
      monitor->end_phase(Phase::forward);
      monitor->end_step();
      HandClock::advance(5);  // the loop's own code
    }
  }
  const auto records = read_records(directory);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(nanoseconds(records[0]["step_seconds"]), 10);
  for (const std::size_t i : {1U, 2U}) {
    EXPECT_EQ(nanoseconds(records[i]["step_seconds"]), 15);
    EXPECT_EQ(nanoseconds(records[i]["inter_step_seconds"]), 5);
    EXPECT_EQ(nanoseconds(records[i]["phases"]["other"]), 5);
  }
}

TEST(Monitor, tagged_steps_are_excluded_from_the_averages) {
  TemporaryDirectory directory;
  Connections connections = on_hand_clock();
  connections.peaks.set(Dtype::bf16, {1e12});
  {
    auto monitor = Monitor::start(without_console(directory), std::move(connections));
    const auto step = [&](std::int64_t ns, StepTag tag) {
      monitor->begin_step({.tokens = 100, .tag = tag, .flops = Flops{500'000'000}});
      HandClock::advance(ns);
      monitor->end_step();
    };
    step(1'000'000, StepTag::train);  // half of the peak
    step(900'000'000, StepTag::compile);
    step(900'000'000, StepTag::evaluation);
    step(1'000'000, StepTag::train);
  }
  const auto records = read_records(directory);
  ASSERT_EQ(records.size(), 4U);
  EXPECT_NEAR(records[3]["mfu"].get<double>(), 0.5, 1e-12);
  const Json summary = read_summary(directory)["final_statistics"];
  EXPECT_NEAR(summary["mfu"].get<double>(), 0.5, 1e-12);
  EXPECT_NEAR(summary["avg_throughput_tokens"].get<double>(), 1e5, 1e-6);
  EXPECT_EQ(records[3]["flops_source"], "user");
}

TEST(Monitor, a_clock_that_jumps_and_a_step_without_length_leave_sane_figures) {
  TemporaryDirectory directory;
  Connections connections = on_hand_clock();
  connections.peaks.set(Dtype::bf16, {1e12});
  {
    auto monitor = Monitor::start(without_console(directory), std::move(connections));
    const auto step = [&](std::int64_t ns) {
      monitor->begin_step({.tokens = 100, .flops = Flops{500'000'000}});
      HandClock::advance(ns);
      monitor->end_step();
    };
    step(0);
    step(1'000'000'000);
    HandClock::unix_base -= 3'600'000'000'000;  // an hour back
    step(1'000'000'000);
    HandClock::unix_base += 7'200'000'000'000;  // and two forward
    step(1'000'000'000);
  }
  const auto records = read_records(directory);
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[0]["mfu"], nullptr);
  EXPECT_EQ(records[0]["tokens_per_second"], nullptr);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(records[i]["step_seconds"], 1.0);
    EXPECT_EQ(records[i]["tokens_per_second"], 100.0);
    EXPECT_EQ(records[i]["productive_seconds"], static_cast<double>(i));
    EXPECT_EQ(records[i]["goodput"], 1.0);
    EXPECT_EQ(records[i]["run_seconds"], static_cast<double>(i));
  }
}

TEST(Monitor, wrong_use_is_counted_and_harmless) {
  TemporaryDirectory directory;
  auto monitor = Monitor::start(without_console(directory));
  monitor->end_step();
  monitor->end_phase(Phase::forward);
  monitor->micro_batch();
  monitor->begin_step({.samples = -1, .tokens = std::numeric_limits<std::int64_t>::max()});
  monitor->begin_step();  // the previous one did not end
  monitor->begin_phase(Phase::forward);
  monitor->end_phase(Phase::backward);
  std::thread{[&] {
    monitor->begin_phase(Phase::data);
    monitor->end_step();
  }}.join();
  for (int i = 0; i < 40; ++i) monitor->begin_phase(Phase::forward);
  for (int i = 0; i < 50; ++i) monitor->end_phase(Phase::forward);
  monitor->begin_phase(Phase::optimizer);
  monitor->end_step({.loss = std::nan("")});  // with a phase left open
  monitor->finish();
  monitor->finish();
  monitor->begin_step();
  monitor->end_step();
  EXPECT_EQ(monitor->status().steps, 1U);
  EXPECT_GE(monitor->status().misuse, 7U);
  EXPECT_EQ(monitor->status().disabled, "finished");
  const auto records = read_records(directory);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0]["loss"], nullptr);
}

TEST(Monitor, another_thread_may_take_the_next_step) {
  TemporaryDirectory directory;
  auto monitor = Monitor::start(without_console(directory));
  for (int i = 0; i < 20; ++i) {
    std::thread{[&] { auto step = monitor->step({.tokens = 1}); }}.join();
  }
  monitor->finish();
  EXPECT_EQ(monitor->status().misuse, 0U);
  EXPECT_EQ(read_records(directory).size(), 20U);
}

TEST(Monitor, disabled_it_writes_nothing) {
  TemporaryDirectory directory;
  Options options = without_console(directory);
  options.enabled = false;
  auto monitor = Monitor::start(options);
  ASSERT_TRUE(monitor);
  { auto step = monitor->step(); }
  monitor->finish();
  EXPECT_FALSE(monitor->enabled());
  EXPECT_TRUE(directory.names().empty());
  EXPECT_THAT(monitor->status().disabled, HasSubstr("disabled"));
}

TEST(Monitor, an_unknown_sink_is_an_error_at_start) {
  TemporaryDirectory directory;
  Options options = without_console(directory);
  options.sinks = {"jsonn:x"};
  const auto monitor = Monitor::start(options);
  ASSERT_FALSE(monitor);
  EXPECT_THAT(monitor.error().message, HasSubstr("did you mean jsonl"));
}

TEST(Monitor, a_directory_that_cannot_be_written_is_logged_and_survived) {
  Options options;
  options.console = false;
  options.directory = "/proc/self/nowhere";
  std::vector<std::string> logged;
  Connections connections;
  connections.warn = [&](const std::string& text) { logged.push_back(text); };
  auto monitor = Monitor::start(options, std::move(connections));
  ASSERT_TRUE(monitor);
  for (int i = 0; i < 100; ++i) auto step = monitor->step({.tokens = 1});
  monitor->finish();
  EXPECT_GT(monitor->status().failed_writes, 0U);
  EXPECT_LE(logged.size(), 5U);  // once for run.json and once per output
  EXPECT_GE(logged.size(), 2U);
}

TEST(Monitor, subscribers_get_finished_records) {
  TemporaryDirectory directory;
  auto monitor = Monitor::start(without_console(directory));
  auto all = monitor->subscribe(100);
  auto few = monitor->subscribe(4);
  for (int i = 0; i < 10; ++i) auto step = monitor->step({.tokens = i});
  monitor->finish();
  int count = 0;
  while (const auto record = all->next(std::chrono::milliseconds{100}))
    EXPECT_EQ(*record->tokens, count++);
  EXPECT_EQ(count, 10);
  EXPECT_TRUE(all->closed());
  EXPECT_EQ(few->dropped(), 6U);
  EXPECT_EQ(*few->next(std::chrono::milliseconds{0})->tokens, 6);
}

TEST(Monitor, a_restart_continues_the_goodput_of_the_directory) {
  TemporaryDirectory directory;
  const auto run = [&](std::int64_t first, std::int64_t last, std::int64_t unix_s) {
    auto monitor =
        Monitor::start(without_console(directory), on_hand_clock(unix_s * 1'000'000'000));
    for (std::int64_t s = first; s <= last; ++s) {
      monitor->begin_step({.tokens = 1, .step = s});
      HandClock::advance(1'000'000'000);
      monitor->end_step();
    }
  };
  run(1, 10, 1'700'000'000);  // ten seconds of work
  run(6, 15, 1'700'000'020);  // ten seconds lost, then five repeated and five new steps
  const auto records = read_records(directory, 1);
  ASSERT_EQ(records.size(), 10U);
  EXPECT_NEAR(records.back()["run_seconds"].get<double>(), 30, 1e-6);
  EXPECT_NEAR(records.back()["productive_seconds"].get<double>(), 15, 1e-6);
  EXPECT_NEAR(records.back()["goodput"].get<double>(), 0.5, 1e-6);
  run(1, 4, 1'700'000'100);  // from the first step: a new run
  EXPECT_NEAR(read_records(directory, 2).back()["goodput"].get<double>(), 1.0, 1e-6);
}

}  // namespace
}  // namespace flopmeter
