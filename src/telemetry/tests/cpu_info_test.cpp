// SPDX-License-Identifier: Apache-2.0
//
// The machines in tests/root are copies of the files that the reader needs.
#include <flopmeter/telemetry/cpu_info.h>

#include <gtest/gtest.h>

#include <algorithm>

namespace flopmeter {
namespace {

CpuInfo of(const std::string& machine) {
  const auto info = read_cpu_info(std::string{FLOPMETER_FAKE_ROOTS} + "/" + machine);
  EXPECT_TRUE(info) << (info ? "" : info.error().message);
  return info ? *info : CpuInfo{};
}

bool has(const CpuInfo& info, std::string_view flag) {
  return std::find(info.flags.begin(), info.flags.end(), flag) != info.flags.end();
}

TEST(CpuInfo, counts_each_usable_physical_core_once) {
  const CpuInfo info = of("xeon_spr");  // Cpus_allowed_list: 0-2,4-6; 4 and up are second threads
  EXPECT_EQ(info.cores, 3);
  EXPECT_EQ(info.clock_hertz, 3.8e9);
  EXPECT_EQ(info.clock_source, "cpufreq maximum");
  EXPECT_EQ(info.model_name, "Intel(R) Xeon(R) Platinum 8480+");
  EXPECT_EQ(info.family, 6);
  EXPECT_EQ(info.model, 0x8f);
  EXPECT_TRUE(has(info, "amx_bf16"));
}

TEST(CpuInfo, the_tightest_quota_above_the_process_limits_the_cores) {
  const CpuInfo info = of("epyc_zen4");  // docker: 250000 100000, docker/abc: 400000 100000
  EXPECT_EQ(info.cores, 2.5);
  EXPECT_EQ(info.clock_hertz, 3707812e3);
}

TEST(CpuInfo, arm_has_an_implementer_and_a_part) {
  const CpuInfo info = of("neoverse_v2");
  EXPECT_EQ(info.vendor, "0x41");
  EXPECT_EQ(info.model, 0xd4f);
  EXPECT_FALSE(info.family);
  EXPECT_EQ(info.cores, 4);
  EXPECT_EQ(info.clock_hertz, 3447e6);
  EXPECT_TRUE(has(info, "asimdhp"));
}

TEST(CpuInfo, an_arm_guest_has_no_clock) {
  const CpuInfo info = of("neoverse_v1_guest");
  EXPECT_EQ(info.cores, 4);
  EXPECT_FALSE(info.clock_hertz);
  EXPECT_TRUE(info.clock_source.empty());
}

TEST(CpuInfo, a_guest_has_a_nominal_clock_and_a_v1_quota_relative_to_its_mount) {
  const CpuInfo info = of("epyc_guest");  // the path /pod does not exist: the quota is at the mount
  EXPECT_EQ(info.cores, 1.5);
  EXPECT_NEAR(*info.clock_hertz, 2445.432e6, 1);
  EXPECT_EQ(info.clock_source, "cpu MHz of a virtual machine; boost clock unknown");
}

TEST(CpuInfo, the_clock_in_the_model_name_is_used_without_cpufreq) {
  const CpuInfo info = of("xeon_guest");  // two threads of one core, no /proc/self/status, no /sys
  EXPECT_EQ(info.cores, 1);
  EXPECT_EQ(info.clock_hertz, 2e9);
}

TEST(CpuInfo, the_current_clock_is_not_used_as_the_maximum) {
  EXPECT_FALSE(of("bare_without_cpufreq").clock_hertz);
}

TEST(CpuInfo, the_error_names_a_missing_cpuinfo_file) {
  const auto info = read_cpu_info(std::string{FLOPMETER_FAKE_ROOTS} + "/nowhere");
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().code, ErrorCode::io_error);
  EXPECT_NE(info.error().message.find("/nowhere/proc/cpuinfo"), std::string::npos);
}

TEST(CpuInfo, this_machine_has_cores) {
  const auto info = read_cpu_info();
  ASSERT_TRUE(info);
  EXPECT_GT(*(*info).cores, 0);
  EXPECT_FALSE((*info).flags.empty());
}

}  // namespace
}  // namespace flopmeter
