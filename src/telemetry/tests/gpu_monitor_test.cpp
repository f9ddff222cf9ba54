// SPDX-License-Identifier: Apache-2.0
//
// GPUs through fake libraries: complete, old, failing, hanging, without symbols, with sentinel
// values.
#include <flopmeter/telemetry/gpu_monitor.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace flopmeter {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

GpuRequest request(const std::string& nvml, const std::string& dcgm = "absent") {
  const std::string folder = FLOPMETER_FAKE_GPU_LIBRARIES;
  return {.uuid = "GPU-fake",
          .activity = true,
          .nvml = folder + "/libflopmeter_fake_nvml_" + nvml + ".so",
          .dcgm = folder + "/libflopmeter_fake_dcgm_" + dcgm + ".so",
          .interval = 5ms,
          .patience = 1s};  // a loaded machine may stall for a tenth of that
}

TEST(GpuMonitor, reads_nvml_and_gpm) {
  const GpuMonitor monitor{request("whole")};
  ASSERT_TRUE(monitor.wait(2, 10s)) << monitor.why_not();
  const auto reading = monitor.latest();
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->utilization, 0.87);
  EXPECT_EQ(reading->power_watts, 650.5);
  EXPECT_EQ(reading->sm_clock_hertz, 1.755e9);
  EXPECT_EQ(reading->memory_clock_hertz, 2.619e9);
  EXPECT_EQ(reading->throttle_reasons, 4U);
  EXPECT_EQ(reading->memory_used_bytes, std::int64_t{60} << 30U);
  EXPECT_EQ(reading->tensor_active, 0.5);
  EXPECT_EQ(reading->sm_active, 0.9);
  EXPECT_EQ(reading->dram_active, 0.3);
  EXPECT_EQ(reading->fp64_active, std::nullopt);  // this GPU does not support that metric
  EXPECT_THAT(monitor.why_not(), IsEmpty());
}

TEST(GpuMonitor, counts_activity_times_peak) {
  const GpuMonitor monitor{request("whole")};
  auto counters = open_gpu_flop_counters(monitor, Dtype::bf16, FlopsPerSecond{1e15});
  ASSERT_TRUE(counters) << counters.error().message;
  EXPECT_EQ((*counters)->dtype(), Dtype::bf16);
  const auto before = (*counters)->read();
  (*counters)->settle();
  const auto after = (*counters)->read();
  ASSERT_TRUE(before && after);
  ASSERT_GT(after->ns, before->ns);
  EXPECT_NEAR((after->flops - before->flops) / (static_cast<double>(after->ns - before->ns) / 1e9),
              0.5e15,
              1e9);
  EXPECT_FALSE(open_gpu_flop_counters(monitor, Dtype::bf16, std::nullopt));  // no peak, no FLOPs
}

TEST(GpuMonitor, dcgm_provides_the_activity_without_gpm) {
  for (const std::string nvml : {"old", "no_gpm"}) {
    const GpuMonitor monitor{request(nvml, "whole")};
    ASSERT_TRUE(monitor.wait(2, 10s)) << monitor.why_not();
    const auto reading = monitor.latest();
    ASSERT_TRUE(reading);
    EXPECT_EQ(reading->throttle_reasons, 4U);  // by its older name
    EXPECT_EQ(reading->tensor_active, 0.25);
    EXPECT_EQ(reading->sm_active, std::nullopt);  // "not supported" is a number above 2^47
  }
}

TEST(GpuMonitor, without_gpm_and_dcgm_the_reasons_are_reported) {
  for (const std::string dcgm : {"absent", "fails", "lacks"}) {
    const GpuMonitor monitor{request("old", dcgm)};
    ASSERT_TRUE(monitor.wait(1, 10s)) << monitor.why_not();
    EXPECT_EQ(monitor.latest()->power_watts, 650.5);
    const auto counters = open_gpu_flop_counters(monitor, Dtype::bf16, FlopsPerSecond{1e15});
    ASSERT_FALSE(counters);
    EXPECT_THAT(counters.error().message, HasSubstr("GPM: the driver is too old"));
    EXPECT_THAT(counters.error().message,
                HasSubstr(dcgm == "absent"  ? "absent.so not found"
                          : dcgm == "lacks" ? "lacks DCGM functions"
                                            : "DCGM: cannot start the embedded engine: error -1"));
  }
}

TEST(GpuMonitor, sentinels_are_empty) {
  for (const std::string nvml : {"sentinels", "sentinels_no_gpm"}) {
    const GpuMonitor monitor{request(nvml, "sentinels")};
    ASSERT_TRUE(monitor.wait(2, 10s)) << monitor.why_not();
    const auto reading = monitor.latest();
    ASSERT_TRUE(reading);
    for (const auto& value : {reading->utilization,
                              reading->power_watts,
                              reading->sm_clock_hertz,
                              reading->memory_clock_hertz,
                              reading->sm_active,
                              reading->tensor_active,
                              reading->fp64_active,
                              reading->fp32_active,
                              reading->fp16_active,
                              reading->dram_active}) {
      EXPECT_EQ(value, std::nullopt);
    }
    EXPECT_EQ(reading->throttle_reasons, std::nullopt);
    EXPECT_EQ(reading->memory_used_bytes, std::nullopt);
    EXPECT_FALSE(monitor.busy());
  }
}

TEST(GpuMonitor, reports_a_library_that_is_absent_fails_or_lacks_functions) {
  const GpuMonitor absent{request("absent")};
  EXPECT_FALSE(absent.wait(1, 10s));
  EXPECT_THAT(absent.why_not(), HasSubstr("absent.so not found"));
  const GpuMonitor lacking{request("lacks")};
  EXPECT_FALSE(lacking.wait(1, 10s));
  EXPECT_THAT(lacking.why_not(), HasSubstr("lacks NVML functions"));
  const GpuMonitor lost{request("fails")};
  EXPECT_FALSE(lost.wait(1, 200ms));
  EXPECT_THAT(lost.why_not(), HasSubstr("GPU is lost"));
  EXPECT_FALSE(lost.latest());
  GpuRequest other = request("whole");
  other.uuid = "GPU-elsewhere";
  const GpuMonitor unknown_gpu{other};
  EXPECT_FALSE(unknown_gpu.wait(1, 10s));
  EXPECT_THAT(unknown_gpu.why_not(), HasSubstr("GPU-elsewhere"));
}

TEST(GpuMonitor, gives_up_on_a_call_that_does_not_return) {
  // The first library hangs after three answers.
  for (const std::string nvml : {"hangs", "hangs_at_start"}) {
    const auto start = std::chrono::steady_clock::now();
    {
      const GpuMonitor monitor{request(nvml)};
      while (monitor.why_not().empty()) std::this_thread::sleep_for(5ms);
      EXPECT_THAT(monitor.why_not(), HasSubstr("did not answer"));
      EXPECT_FALSE(monitor.latest());
      EXPECT_FALSE(monitor.busy());
      EXPECT_FALSE(open_gpu_flop_counters(monitor, Dtype::bf16, FlopsPerSecond{1e15}));
    }  // destruction does not wait for the thread
    EXPECT_LT(std::chrono::steady_clock::now() - start, 8s);
  }
}

}  // namespace
}  // namespace flopmeter
