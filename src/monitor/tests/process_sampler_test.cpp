// SPDX-License-Identifier: Apache-2.0
#include "../src/process_sampler.h"

#include <flopmeter/core/interpreter_time.h>

#include <gtest/gtest.h>

namespace flopmeter {
namespace {

constexpr std::int64_t second = 1'000'000'000;

TEST(ProcessSampler, waits_before_the_first_step_are_not_part_of_it) {
  ProcessSampler sampler{false, {}};
  sampler.start(0);
  const auto collected_in = [&](std::int64_t now_ns) {
    garbage_collection_ns().store(second);
    StepRecord record;
    record.step_seconds = {0.5};
    sampler.fill(record, now_ns);
    return record.garbage_collection_seconds->value;
  };
  EXPECT_DOUBLE_EQ(collected_in(2 * second), 0.25) << "a quarter of the time since the start";
  EXPECT_DOUBLE_EQ(collected_in(4 * second), 1) << "records may wait for the writer";
}

}  // namespace
}  // namespace flopmeter
