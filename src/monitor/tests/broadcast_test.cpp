// SPDX-License-Identifier: Apache-2.0
#include "../src/broadcast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace flopmeter {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using namespace std::chrono_literals;

/// A wire that holds the last message of rank 0.
struct Wire {
  std::vector<std::byte> bytes;
  bool cut = false;
};

class WireExchange final : public Exchange {
 public:
  WireExchange(Wire& wire, int rank) : wire_(wire), rank_(rank) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int world_size() const override { return 2; }
  bool broadcast(std::span<std::byte> bytes,
                 std::chrono::milliseconds,
                 const std::stop_token& stop) override {
    ++calls;
    if (wire_.cut || stop.stop_requested()) return false;
    if (rank_ == 0) {
      wire_.bytes.assign(bytes.begin(), bytes.end());
    } else {
      std::copy(wire_.bytes.begin(), wire_.bytes.end(), bytes.begin());
    }
    return true;
  }
  int calls = 0;

 private:
  Wire& wire_;
  int rank_;
};

StepRecord step(std::int64_t process_step, std::uint64_t flops = 0) {
  StepRecord record;
  record.process_step = process_step;
  if (flops == 0) return record;
  record.model_flops = Flops{static_cast<WideInt>(flops)};
  record.model_flops_by_dtype[0] = flops;
  record.flops_source = FlopsProvenance::counted;
  return record;
}

TEST(Broadcast, others_show_rank_0s_figure_and_its_age) {
  Wire wire;
  WireExchange first{wire, 0};
  WireExchange second{wire, 1};
  Broadcast sender{&first, 3, 10ms};
  Broadcast receiver{&second, 3, 10ms};
  for (std::int64_t i = 0; i < 7; ++i) {
    StepRecord measured = step(i, 100 + static_cast<std::uint64_t>(i));
    EXPECT_FALSE(sender.share(measured));
    StepRecord received = step(i);
    EXPECT_FALSE(receiver.share(received));
    EXPECT_EQ(received.model_flops, Flops{100 + i / 3 * 3});
    EXPECT_EQ(received.flops_source, FlopsProvenance::broadcast);
    EXPECT_EQ(received.calibration_age, i % 3);
  }
  EXPECT_EQ(second.calls, 3);
}

TEST(Broadcast, ends_at_the_first_missed_deadline) {
  Wire wire;
  WireExchange first{wire, 0};
  WireExchange second{wire, 1};
  Broadcast sender{&first, 1, 10ms};
  Broadcast receiver{&second, 1, 10ms};
  StepRecord measured = step(0, 5);
  StepRecord record = step(0);
  EXPECT_FALSE(sender.share(measured));
  EXPECT_FALSE(receiver.share(record));
  wire.cut = true;
  record = step(1);
  EXPECT_THAT(receiver.share(record).value_or(""), HasSubstr("within 10 ms"));
  EXPECT_EQ(record.model_flops, Flops{5});
  record = step(2);
  EXPECT_FALSE(receiver.share(record));
  EXPECT_EQ(second.calls, 2);
}

TEST(Broadcast, a_run_that_ends_first_logs_who_was_late_and_what_the_deadline_was) {
  Wire wire;
  for (const int rank : {0, 1}) {
    WireExchange exchange{wire, rank};
    Broadcast broadcast{&exchange, 1, 30s};
    broadcast.stop();
    StepRecord record = step(0, 5);
    const std::string text = broadcast.share(record).value_or("");
    EXPECT_THAT(text, StartsWith(rank == 0 ? "a rank is late" : "rank 0 is late"));
    EXPECT_THAT(text, HasSubstr("before this rank's run ended, and the deadline of 30000 ms"));
  }
}

TEST(Broadcast, a_figure_for_another_step_is_not_taken) {
  Wire wire;
  WireExchange first{wire, 0};
  WireExchange second{wire, 1};
  Broadcast sender{&first, 1, 10ms};
  Broadcast receiver{&second, 1, 10ms};
  StepRecord measured = step(3, 5);
  EXPECT_FALSE(sender.share(measured));
  StepRecord record = step(4);
  EXPECT_THAT(receiver.share(record).value_or(""), HasSubstr("another step"));
  EXPECT_EQ(record.model_flops, std::nullopt);
}

}  // namespace
}  // namespace flopmeter
