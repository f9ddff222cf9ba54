// SPDX-License-Identifier: Apache-2.0
#include "trace_text.h"

#include <gmock/gmock.h>

namespace flopmeter {
namespace {

/// A rank that arrives at two all-reduces of 4 MB at these times; both end when the last rank's do.
DeviceReport rank(int number, double first, double second, double clock = 0) {
  const std::string args =
      R"("Collective name": "allreduce", "In msg nelems": 1048576, "Out msg nelems": 1048576,
         "dtype": "Float", "Group size": 2, "Process Group Name": "0")";
  DeviceReport report =
      TraceText{}
          .device("kernel", "ncclDevKernel_AllReduce", clock + first, 120 - first, args)
          .device("kernel", "ncclDevKernel_AllReduce", clock + second, 320 - second, args)
          .report();
  report.rank = number;
  return report;
}

TEST(TraceRanks, the_rank_that_arrives_last_is_the_straggler) {
  const TraceReport report = merge_ranks({rank(0, 10, 210), rank(1, 100, 300)});
  ASSERT_TRUE(report.straggler);
  EXPECT_EQ(report.straggler->rank, 1);
  EXPECT_NEAR(report.straggler->wait.value, 180e-6, 1e-12);
}

TEST(TraceRanks, clocks_that_differ_are_aligned_by_the_ends) {
  const TraceReport report = merge_ranks({rank(0, 10, 210), rank(1, 100, 300, 5000)});
  EXPECT_NEAR(report.straggler->wait.value, 180e-6, 1e-12);
  EXPECT_THAT(report.notes, testing::Contains(testing::HasSubstr("clocks")));
}

TEST(TraceRanks, lateness_that_moves_from_rank_to_rank_has_no_straggler) {
  const DeviceReport both = rank(0, 10, 210);
  EXPECT_FALSE(merge_ranks({both}).straggler);
}

TEST(TraceRanks, waiting_is_separate_from_transfer) {
  const TraceReport report = merge_ranks({rank(0, 10, 210), rank(1, 100, 300)});
  EXPECT_EQ(report.ranks[0].collective_wait, 180'000);
  EXPECT_EQ(report.ranks[1].collective_wait, 0);
  for (const DeviceReport& each : report.ranks) {
    EXPECT_EQ(each.collectives[0].transfer, 2 * 20'000);
    EXPECT_NEAR(*each.collectives[0].bus_bytes_per_second, 4194304 / 20e-6, 1);
  }
  EXPECT_FALSE(rank(0, 10, 210).collective_wait);
}

TEST(TraceRanks, calls_of_a_group_are_compared_among_its_ranks) {
  const auto grouped_rank = [](int number, const std::string& group, double arrival) {
    DeviceReport report =
        TraceText{}
            .device("kernel",
                    "ncclDevKernel_AllReduce",
                    arrival,
                    120 - arrival,
                    R"("Collective name": "allreduce", "Group size": 2, "Process Group Name": ")" +
                        group + '"')
            .report();
    report.rank = number;
    return report;
  };
  const TraceReport report = merge_ranks({grouped_rank(0, "a", 10),
                                          grouped_rank(1, "a", 30),
                                          grouped_rank(2, "b", 40),
                                          grouped_rank(3, "b", 100)});
  std::vector<std::optional<TraceNs>> waits;
  for (const DeviceReport& each : report.ranks) waits.push_back(each.collective_wait);
  EXPECT_THAT(waits, testing::ElementsAre(20'000, 0, 60'000, 0));
}

TEST(TraceRanks, collectives_have_bytes_and_bus_bandwidth) {
  const DeviceReport report = rank(0, 20, 220);
  ASSERT_EQ(report.collectives.size(), 1U);
  const CollectiveSummary& all = report.collectives[0];
  EXPECT_EQ(all.kind, "allreduce");
  EXPECT_EQ(all.count, 2);
  EXPECT_EQ(all.bytes->value, 4194304);
  // 2 (n - 1) / n = 1 for two ranks; 100 us each
  EXPECT_NEAR(*all.bus_bytes_per_second, 4194304 / 100e-6, 1);
}

TEST(TraceRanks, json_has_every_key_of_its_schema) {
  std::string text;
  JsonWriter json{text};
  json.begin_object();
  write_json_members(json, merge_ranks({rank(0, 10, 210), rank(1, 100, 300)}));
  json.end_object();
  for (const char* key : {"schema",
                          "ranks",
                          "mfu",
                          "straggler",
                          "world_size",
                          "device",
                          "steps",
                          "time",
                          "flops",
                          "coverage",
                          "unsupported",
                          "collectives"}) {
    EXPECT_THAT(text, testing::HasSubstr("\"" + std::string{key} + "\":"));
  }
}

}  // namespace
}  // namespace flopmeter
