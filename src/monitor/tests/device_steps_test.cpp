// SPDX-License-Identifier: Apache-2.0
#include "../src/device_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace flopmeter {
namespace {

using ::testing::ElementsAre;
using Kind = DeviceMark::Kind;

constexpr std::int64_t ms = 1'000'000;

std::int64_t host_time = 0;

/// A device that works through a script: each mark lies behind the work that was enqueued.
class ScriptedDevice final : public DeviceClock {
 public:
  State open() noexcept override { return state; }
  Recorded record() noexcept override {
    const bool is_full = ++calls % 4 != 0;  // then the host waits for a kernel
    host_time += 1000 + (is_full ? blocked_ns : 0);
    if (capturing) return {};
    events.push_back(std::make_unique<std::int64_t>(std::max(host_time, tail)));
    ++recorded;
    return {.event = events.back().get(), .stream = stream};
  }
  Reading read(void* event, std::int64_t& device_ns) noexcept override {
    if (fails) return Reading::failed;
    const auto* time = static_cast<std::int64_t*>(event);
    if (*time > host_time) return Reading::not_reached;
    device_ns = *time - clock_difference;
    release(event);
    return Reading::reached;
  }
  void release(void* /*event*/) noexcept override { --recorded; }
  bool anchor(Anchor& anchor) noexcept override {
    if (!has_anchors) return false;
    anchor = {.host_ns = host_time, .device_ns = host_time - clock_difference};
    return true;
  }
  void listen(DeviceListener& next) noexcept override { listener = &next; }
  void stop_listening(DeviceListener& /*own*/) noexcept override { listener = nullptr; }

  /// Enqueues work; the host needs `host_ns` for that.
  void work(std::int64_t device_ns, std::int64_t host_ns) {
    tail = std::max(tail, host_time) + device_ns;
    host_time += host_ns;
  }

  State state = State::ready;
  bool capturing = false;
  bool fails = false;
  bool has_anchors = true;
  std::int64_t blocked_ns = 0;  ///< in a full launch queue
  int calls = 0;
  std::int64_t stream = 0;
  std::int64_t tail = 0;
  std::int64_t clock_difference = 12345 * ms;
  std::vector<std::unique_ptr<std::int64_t>> events;
  int recorded = 0;  ///< and not released
  DeviceListener* listener = nullptr;
};

struct Published {
  std::int64_t step;
  std::optional<DeviceTimes> times;
};

class DeviceStepsTest : public ::testing::Test {
 protected:
  DeviceStepsTest() {
    host_time = 1'000'000'000;
    steps.enable();
  }

  void begin() {
    steps.new_call();
    steps.start(std::exchange(continues, true));
  }
  void phase(Phase phase) {
    steps.new_call();
    steps.switch_phase(phase);
  }
  void end(std::int64_t step) {
    steps.new_call();
    steps.end();
    poll();
    Slot slot{};
    slot.record.step = step;
    slot.start_ns = std::exchange(ended_ns, host_time);
    slot.end_ns = host_time;
    fate = steps.take(slot, true);
  }
  void poll() {
    steps.poll([this](const Slot& slot, const std::optional<DeviceTimes>& times) {
      published.push_back({slot.record.step, times});
    });
  }
  /// A step of 30 ms of device work that takes the host 3 ms.
  void plain_step(std::int64_t step) {
    begin();
    phase(Phase::data);
    host_time += ms;
    phase(Phase::forward);
    device.work(10 * ms, ms);
    phase(Phase::backward);
    device.work(20 * ms, ms);
    end(step);
  }
  /// A step of micro-batches, each with 10 ms of forward and 20 ms of backward.
  void accumulating_step(std::int64_t step, int micro_batches) {
    begin();
    for (int i = 0; i < micro_batches; ++i) {
      phase(Phase::data);
      host_time += ms / 10;
      phase(i == 0 ? Phase::other : Phase::backward);  // as a tracker that does not see its end
      steps.on(DeviceEvent::copy_begin, 100);
      device.work(5 * ms, ms);
      steps.on(DeviceEvent::copy_end, 0);
      steps.new_call();
      if (i > 0) steps.switch_phase(Phase::other);
      steps.switch_phase(Phase::forward);
      device.work(10 * ms, ms);
      phase(Phase::backward);
      steps.on(DeviceEvent::backward_begin, 0);
      device.work(20 * ms, ms);
      steps.on(DeviceEvent::backward_end, 0);
    }
    phase(Phase::optimizer);
    device.work(2 * ms, ms);
    end(step);
  }
  double phase_of(std::size_t at, Phase phase) {
    return (*published[at].times->phases)[static_cast<std::size_t>(phase)].value;
  }

  ScriptedDevice device;
  DeviceSteps steps{&device, Clock{.monotonic = []() noexcept { return host_time; }}, 0.005};
  bool continues = false;
  std::int64_t ended_ns = 1'000'000'000;
  DeviceSteps::Fate fate = DeviceSteps::Fate::host;
  std::vector<Published> published;
};

TEST_F(DeviceStepsTest, records_wait_until_the_device_has_reached_their_end) {
  for (int i = 0; i < 4; ++i) plain_step(i);
  EXPECT_TRUE(published.empty());
  EXPECT_EQ(fate, DeviceSteps::Fate::deferred);
  host_time += 60 * ms;
  poll();
  ASSERT_EQ(published.size(), 2U);
  host_time += 1000 * ms;
  poll();
  ASSERT_EQ(published.size(), 4U);
  EXPECT_FALSE(steps.waiting());
}

TEST_F(DeviceStepsTest, times_are_those_of_the_device_not_of_the_host) {
  for (int i = 0; i < 4; ++i) plain_step(i);
  host_time += 1000 * ms;
  poll();
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_NEAR(published[i].times->step.value, 0.030, 1e-5);
    EXPECT_NEAR(phase_of(i, Phase::forward), 0.010, 1e-5);
    EXPECT_NEAR(phase_of(i, Phase::backward), 0.020, 1e-5);
    EXPECT_NEAR(phase_of(i, Phase::data), 0, 1e-5);
    EXPECT_NEAR(published[i].times->idle->max.value, 0, 1e-5);
    EXPECT_NEAR(published[i].times->lag->value, 0.027 * static_cast<double>(i + 1), 0.002);
  }
}

TEST_F(DeviceStepsTest, a_loader_that_the_queue_does_not_hide_is_idle_time) {
  plain_step(0);
  begin();
  phase(Phase::data);
  host_time += 70 * ms;  // 28 ms of it are hidden by the step before
  phase(Phase::forward);
  device.work(10 * ms, ms);
  end(1);
  host_time += 1000 * ms;
  poll();
  EXPECT_NEAR(phase_of(1, Phase::data), 0.042, 0.001);
  EXPECT_NEAR(published[1].times->idle->min.value, 0.042, 0.001);
  EXPECT_NEAR(published[1].times->idle->max.value, 0.043, 0.001);
}

TEST_F(DeviceStepsTest, synchronizations_are_counted_with_the_time_of_the_host) {
  begin();
  device.work(10 * ms, ms);
  device.listener->on(DeviceEvent::synchronization_begin, 0);
  host_time += 12 * ms;  // the device is done after 9 ms
  device.listener->on(DeviceEvent::synchronization_end, 0);
  device.work(10 * ms, ms);
  end(0);
  host_time += 1000 * ms;
  poll();
  const DeviceTimes& times = *published[0].times;
  EXPECT_EQ(times.synchronizations, 1);
  EXPECT_NEAR(times.synchronization->value, 0.012, 1e-4);
  EXPECT_NEAR(times.idle->min.value, 0.003, 1e-4);
  EXPECT_NEAR(times.idle->max.value, 0.005, 1e-4);
}

TEST_F(DeviceStepsTest, a_copy_on_the_stream_of_the_step_is_exposed) {
  begin();
  device.work(10 * ms, ms);
  device.listener->on(DeviceEvent::copy_begin, 0);
  device.work(5 * ms, 0);
  device.listener->on(DeviceEvent::copy_end, 0);
  device.stream = 7;  // a prefetcher's own, for which the step does not wait
  const std::int64_t tail = device.tail;
  device.listener->on(DeviceEvent::copy_begin, 0);
  device.work(3 * ms, 0);
  device.listener->on(DeviceEvent::copy_end, 0);
  device.stream = 0;
  device.tail = tail;
  end(0);
  host_time += 1000 * ms;
  poll();
  EXPECT_NEAR(published[0].times->exposed_copy->value, 0.005, 1e-5);
  EXPECT_EQ(published[0].times->synchronizations, 0);
}

TEST_F(DeviceStepsTest, a_wait_for_a_copy_on_another_stream_is_an_exposed_copy) {
  begin();
  device.stream = 7;
  const std::int64_t idle = std::exchange(device.tail, 0);
  device.listener->on(DeviceEvent::copy_begin, 0);
  device.work(30 * ms, 0);
  device.listener->on(DeviceEvent::copy_end, 0);
  device.stream = 0;
  const std::int64_t copied = std::exchange(device.tail, idle);
  phase(Phase::forward);
  device.work(10 * ms, ms);
  phase(Phase::other);
  device.tail = copied;  // the stream waits for the copy
  end(0);
  host_time += 1000 * ms;
  poll();
  EXPECT_NEAR(published[0].times->step.value, 0.030, 1e-4);
  EXPECT_NEAR(published[0].times->exposed_copy->value, 0.020, 1e-4);
  EXPECT_NEAR(published[0].times->idle->max.value, 0.001, 1e-4);  // of forward
}

TEST_F(DeviceStepsTest, a_loss_that_is_computed_after_the_model_belongs_to_forward) {
  for (int i = 0; i < 3; ++i) {
    begin();
    phase(Phase::forward);
    device.work(10 * ms, ms);
    phase(Phase::backward);  // the model has returned
    device.work(5 * ms, ms);
    if (i < 2) device.listener->on(DeviceEvent::backward_call, 0);
    device.work(20 * ms, ms);
    phase(Phase::optimizer);
    device.work(2 * ms, ms);
    end(i);
  }
  host_time += 1000 * ms;
  poll();
  EXPECT_NEAR(
      phase_of(0, Phase::forward), 0.010, 1e-5);  // it is not known yet that calls are reported
  EXPECT_NEAR(phase_of(1, Phase::forward), 0.015, 1e-5);
  EXPECT_NEAR(phase_of(1, Phase::backward), 0.020, 1e-5);
  EXPECT_NEAR(phase_of(2, Phase::optimizer), 0.002, 1e-5);
}

TEST_F(DeviceStepsTest, reductions_after_the_last_gradient_are_exposed_communication) {
  begin();
  phase(Phase::forward);
  device.work(10 * ms, ms);
  phase(Phase::backward);
  device.listener->on(DeviceEvent::backward_begin, 0);
  device.work(20 * ms, ms);
  device.listener->on(DeviceEvent::collective, 0);
  device.listener->on(DeviceEvent::graph_end, 0);
  device.work(7 * ms, 0);
  device.listener->on(DeviceEvent::backward_end, 0);
  device.work(2 * ms, 0);  // clips gradients
  phase(Phase::optimizer);
  device.work(4 * ms, ms);
  end(0);
  host_time += 1000 * ms;
  poll();
  EXPECT_NEAR(published[0].times->exposed_communication->value, 0.007, 1e-5);
  EXPECT_NEAR(phase_of(0, Phase::communication), 0.007, 1e-5);
  EXPECT_NEAR(phase_of(0, Phase::backward), 0.020, 1e-5);
  EXPECT_NEAR(phase_of(0, Phase::other), 0.002, 1e-4);
  EXPECT_NEAR(phase_of(0, Phase::optimizer), 0.004, 1e-5);
}

TEST_F(DeviceStepsTest, without_collectives_communication_is_unknown) {
  plain_step(0);
  host_time += 1000 * ms;
  poll();
  EXPECT_FALSE(published[0].times->exposed_communication);
}

TEST_F(DeviceStepsTest, a_capture_inside_a_step_hides_its_phases_only) {
  begin();
  device.work(10 * ms, ms);
  device.capturing = true;
  phase(Phase::forward);
  device.capturing = false;
  device.work(10 * ms, ms);
  end(0);
  host_time += 1000 * ms;
  poll();
  EXPECT_NEAR(published[0].times->step.value, 0.020, 1e-5);
  EXPECT_FALSE(published[0].times->phases);
}

TEST_F(DeviceStepsTest, a_step_that_ends_on_another_stream_has_no_device_time) {
  begin();
  device.work(10 * ms, ms);
  device.stream = 7;
  end(0);
  host_time += 1000 * ms;
  poll();
  EXPECT_FALSE(published[0].times);
}

TEST_F(DeviceStepsTest, an_event_that_cannot_be_read_ends_device_time) {
  plain_step(0);
  plain_step(1);
  device.fails = true;
  poll();
  ASSERT_EQ(published.size(), 2U);
  EXPECT_FALSE(published[0].times);
  EXPECT_FALSE(steps.is_ready());
  EXPECT_EQ(device.listener, nullptr);
  plain_step(2);
  EXPECT_EQ(fate, DeviceSteps::Fate::untimed);
}

TEST_F(DeviceStepsTest, a_host_that_runs_far_ahead_publishes_records_without_times) {
  for (int i = 0; i < 300; ++i) {
    begin();
    device.work(1000 * ms, ms);
    end(i);
  }
  ASSERT_FALSE(published.empty());
  EXPECT_EQ(published.front().step, 0);
  EXPECT_FALSE(published.front().times);
}

TEST_F(DeviceStepsTest, steps_that_follow_each_other_sum_to_the_time_of_the_device) {
  for (int i = 0; i < 10; ++i) plain_step(i);
  host_time += 1000 * ms;
  poll();
  double sum = 0;
  for (const Published& one : published) sum += one.times->step.value;
  EXPECT_NEAR(sum, 0.3, 0.002);
}

TEST_F(DeviceStepsTest, events_are_released) {
  for (int i = 0; i < 100; ++i) {
    plain_step(i);
    host_time += 40 * ms;
  }
  begin();
  steps.discard();
  begin();
  EXPECT_LE(device.recorded, 12);
}

TEST_F(DeviceStepsTest, without_a_device_host_times_are_right) {
  device.state = DeviceClock::State::no_device;
  plain_step(0);
  EXPECT_EQ(fate, DeviceSteps::Fate::host);
  EXPECT_EQ(device.recorded, 0);
  device.state = DeviceClock::State::unsupported;
  plain_step(1);
  EXPECT_EQ(fate, DeviceSteps::Fate::untimed);
}

TEST_F(DeviceStepsTest, a_first_blocking_copy_lasts_no_longer_than_the_slowest_link) {
  begin();
  device.listener->on(DeviceEvent::copy_begin, 1000);
  host_time += 9 * ms;  // the host wakes up late
  device.listener->on(DeviceEvent::blocking_copy_end, 0);
  end(0);
  host_time += 1000 * ms;
  poll();
  EXPECT_LT(published[0].times->exposed_copy->value, 1e-4);
  EXPECT_EQ(published[0].times->synchronizations, 1);
}

TEST_F(DeviceStepsTest, expensive_events_are_recorded_at_the_ends_of_steps_only) {
  for (int i = 0; i < 20; ++i) {
    begin();
    phase(Phase::forward);
    device.work(ms / 2, ms / 2);  // four events of 1 us are more than 0.5 %
    phase(Phase::backward);
    end(i);
  }
  host_time += 1000 * ms;
  poll();
  EXPECT_TRUE(published.front().times->phases);
  ASSERT_TRUE(published.back().times);
  EXPECT_FALSE(published.back().times->phases);
  EXPECT_NEAR(published.back().times->step.value, 0.0005, 1e-4);
}

TEST_F(DeviceStepsTest, records_from_before_there_were_fewer_marks_do_not_end_device_time) {
  for (int i = 0; i < 40; ++i) {
    begin();
    phase(Phase::forward);
    device.work(2 * ms, ms / 10);  // the device is more and more behind
    phase(Phase::backward);
    phase(Phase::optimizer);
    host_time += i < 20 ? 0 : 4 * ms;
    for (int wait = 0; wait < 10; ++wait) {
      steps.on(DeviceEvent::synchronization_begin, 0);
      steps.on(DeviceEvent::synchronization_end, 0);
    }
    end(i);
  }
  host_time += 1000 * ms;
  poll();
  ASSERT_TRUE(published.back().times);
  EXPECT_FALSE(published.back().times->phases);
}

TEST_F(DeviceStepsTest, a_full_launch_queue_does_not_make_events_expensive) {
  device.blocked_ns = ms / 5;
  for (int i = 0; i < 20; ++i) plain_step(i);
  host_time += 1000 * ms;
  poll();
  EXPECT_TRUE(published.back().times->phases);
}

TEST_F(DeviceStepsTest, a_step_takes_few_events) {
  begin();
  steps.switch_phase(Phase::data);
  host_time += ms;
  phase(Phase::other);
  host_time += ms;
  phase(Phase::forward);
  device.work(ms, ms);
  phase(Phase::other);
  steps.switch_phase(Phase::backward);  // in the same call: the same mark
  device.work(ms, ms);
  phase(Phase::other);
  steps.switch_phase(Phase::optimizer);
  device.work(ms, ms);
  phase(Phase::other);
  steps.end();
  EXPECT_EQ(device.recorded, 6);
}

TEST_F(DeviceStepsTest, an_additional_micro_batch_takes_three_events_and_two_for_its_copy) {
  std::vector<std::size_t> counts;
  for (const int micro_batches : {1, 1, 4, 4, 4}) {
    const std::size_t before = device.events.size();
    accumulating_step(static_cast<std::int64_t>(counts.size()), micro_batches);
    counts.push_back(device.events.size() - before);
  }
  EXPECT_EQ(counts[4], counts[1] + 3 * (3 + 2));
  host_time += 10'000 * ms;
  poll();
  for (const std::size_t step : {3U, 4U}) {
    EXPECT_NEAR(phase_of(step, Phase::forward), 0.040, 1e-5);
    EXPECT_NEAR(phase_of(step, Phase::backward), 0.080, 1e-5);
    EXPECT_NEAR(phase_of(step, Phase::optimizer), 0.002, 1e-5);
    EXPECT_NEAR(published[step].times->exposed_copy->value, 0.020, 1e-5);
  }
}

TEST_F(DeviceStepsTest, without_anchors_the_shortest_lag_is_that_of_an_empty_queue) {
  device.has_anchors = false;
  for (int i = 0; i < 4; ++i) plain_step(i);
  host_time += 1000 * ms;
  poll();
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_NEAR(published[i].times->idle->max.value, 0, 1e-5);
    EXPECT_NEAR(published[i].times->lag->value, 0.027 * static_cast<double>(i + 1), 0.002);
  }
}

}  // namespace
}  // namespace flopmeter
