// SPDX-License-Identifier: Apache-2.0
#include "trace_text.h"

namespace flopmeter {
namespace {

TraceNs exposed(const TimeSplit& split, DeviceClass kind) {
  return split.exposed[static_cast<std::size_t>(kind)];
}

TraceNs idle(const DeviceReport& report, IdleCause cause) {
  return report.idle.time[static_cast<std::size_t>(cause)];
}

TEST(DeviceTime, every_nanosecond_belongs_to_one_class) {
  const DeviceReport report = TraceText{}
                                  .device("kernel", "k", 0, 10)
                                  .device("kernel", "ncclKernel_AllReduce", 5, 20, "", 8)
                                  .device("gpu_memcpy", "Memcpy HtoD", 20, 10, "", 9)
                                  .device("gpu_memset", "Memset", 28, 4, "", 10)
                                  .device("kernel", "k", 40.001, 2)
                                  .report();
  EXPECT_EQ(report.split.window, 42001);
  EXPECT_EQ(exposed(report.split, DeviceClass::compute), 12000);
  EXPECT_EQ(exposed(report.split, DeviceClass::communication), 15000);
  EXPECT_EQ(exposed(report.split, DeviceClass::memcpy), 5000);
  EXPECT_EQ(exposed(report.split, DeviceClass::memset), 2000);
  EXPECT_EQ(report.split.idle, 8001);
  EXPECT_EQ(report.split.total[static_cast<std::size_t>(DeviceClass::communication)], 20000);
}

TEST(DeviceTime, kernels_of_one_class_count_once_if_they_overlap) {
  const DeviceReport report = TraceText{}
                                  .device("kernel", "a", 0, 10)
                                  .device("kernel", "b", 2, 3, "", 8)
                                  .device("kernel", "c", 8, 4, "", 9)
                                  .report();
  EXPECT_EQ(exposed(report.split, DeviceClass::compute), 12000);
  EXPECT_EQ(report.split.idle, 0);
  EXPECT_EQ(report.kernels, 3);
}

TEST(DeviceTime, idle_time_is_explained_by_the_launch_that_ends_it) {
  const DeviceReport report =
      TraceText{}
          .kernel("first", 1, 0, 10, 10)   // until 20
          .kernel("queued", 2, 5, 25, 5)   // launched before the idle interval
          .kernel("late", 3, 35, 40, 5)    // 30 to 40: launched at 35
          .kernel("flying", 4, 44, 48, 2)  // 45 to 48: launch from 44 to 46
          .device("kernel", "orphan", 60, 1)
          .report();
  EXPECT_EQ(idle(report, IdleCause::queued), 5000);
  EXPECT_EQ(idle(report, IdleCause::launch), 10000);
  EXPECT_EQ(idle(report, IdleCause::launch_in_flight), 3000);
  EXPECT_EQ(idle(report, IdleCause::unknown), 10000);
}

TEST(DeviceTime, a_late_launch_is_explained_by_what_its_thread_did) {
  const DeviceReport report =
      TraceText{}
          .kernel("first", 1, 0, 10, 10)
          .event("user_annotation", "enumerate(DataLoader)#_SingleProcess.__next__", 15, 20)
          .kernel("after the loader", 2, 38, 40, 10)  // idle 20 to 40, in the loader until 35
          .event("cuda_runtime", "cudaStreamSynchronize", 45, 6)
          .kernel("after synchronizing", 3, 55, 60, 10)  // idle 50 to 60
          .event("cuda_runtime", "cudaMalloc", 71, 4)
          .kernel("after allocating", 4, 78, 80, 1)  // idle 70 to 80
          .report();
  EXPECT_EQ(idle(report, IdleCause::data_loading), 15000);
  EXPECT_EQ(idle(report, IdleCause::launch), 5000);
  EXPECT_EQ(idle(report, IdleCause::synchronization), 10000);
  EXPECT_EQ(idle(report, IdleCause::allocation), 10000);
}

TEST(DeviceTime, a_device_step_ends_with_the_last_work_that_it_launched) {
  const DeviceReport report = TraceText{}
                                  .device("kernel", "of the step before", 90, 20)  // until 110
                                  .step(1, 100, 10)
                                  .kernel("a", 1, 101, 120, 80)  // the device lags: until 200
                                  .step(2, 110, 10)
                                  .kernel("b", 2, 111, 200, 100)
                                  .step(3, 300, 10)  // launches nothing
                                  .report();
  ASSERT_EQ(report.steps.size(), 3U);
  EXPECT_EQ(report.steps[0].device->length(), 90000);
  EXPECT_EQ(report.steps[0].host.length(), 10000);
  EXPECT_EQ(report.steps[1].device->length(), 100000);
  EXPECT_FALSE(report.steps[2].device);
  EXPECT_EQ(report.carried_over, 1);
}

TEST(DeviceTime, devices_of_one_file_have_separate_reports) {
  Result<Trace> trace = parse_trace(
      R"([{"ph": "X", "cat": "kernel", "name": "a", "ts": 0, "dur": 10, "args": {"device": 0}},
          {"ph": "X", "cat": "kernel", "name": "b", "ts": 5, "dur": 10, "args": {"device": 1}}])");
  const std::vector<DeviceReport> reports = report_devices(*trace);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0].split.window, 10000);
  EXPECT_EQ(reports[1].device_index, 1);
  EXPECT_EQ(reports[1].split.idle, 0);
}

}  // namespace
}  // namespace flopmeter
