// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/catalog/cpu_peak.h>

#include <gtest/gtest.h>

namespace flopmeter {
namespace {

CpuInfo x86(std::string vendor,
            int family,
            int model,
            std::vector<std::string> flags,
            double cores,
            double hertz) {
  CpuInfo cpu;
  cpu.vendor = std::move(vendor);
  cpu.family = family;
  cpu.model = model;
  cpu.flags = std::move(flags);
  cpu.cores = cores;
  cpu.clock_hertz = hertz;
  cpu.clock_source = "cpufreq maximum";
  return cpu;
}

const std::vector<std::string> avx2 = {"fma", "avx2"};
const std::vector<std::string> avx512 = {"fma", "avx2", "avx512f"};

/// FLOPs per core and cycle, from the table for one core at 1 Hz.
std::optional<double> per_cycle(CpuInfo cpu, Dtype dtype) {
  cpu.cores = 1;
  cpu.clock_hertz = 1;
  const auto rate = cpu_peak(cpu).peak(dtype);
  return rate ? std::optional{rate->value} : std::nullopt;
}

TEST(CpuPeak, sapphire_rapids_has_two_avx512_units_and_amx) {
  auto cpu = x86("GenuineIntel", 6, 0x8f, avx512, 2, 2.1e9);
  for (const char* flag :
       {"avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_int8"}) {
    cpu.flags.emplace_back(flag);
  }
  EXPECT_EQ(per_cycle(cpu, Dtype::fp64), 32);
  EXPECT_EQ(per_cycle(cpu, Dtype::fp32), 64);
  EXPECT_EQ(per_cycle(cpu, Dtype::fp16), 128);
  EXPECT_EQ(per_cycle(cpu, Dtype::bf16), 1024);
  EXPECT_EQ(per_cycle(cpu, Dtype::int8), 2048);
  EXPECT_FALSE(per_cycle(cpu, Dtype::tf32));
  EXPECT_FALSE(per_cycle(cpu, Dtype::fp8));
  const PeakTable table = cpu_peak(cpu);
  EXPECT_EQ(table.source,
            "formula: 2 cores x 2.1 GHz (cpufreq maximum) x 2 x 16 fp32 FMA, and AMX");
  EXPECT_DOUBLE_EQ(table.peak(Dtype::bf16)->value, 2 * 2.1e9 * 1024);
}

TEST(CpuPeak, zen_4_runs_512_bits_on_two_256_bit_pipes) {
  auto cpu = x86("AuthenticAMD", 0x19, 0x11, avx512, 96, 3.7e9);
  cpu.flags.emplace_back("avx512_bf16");
  EXPECT_EQ(per_cycle(cpu, Dtype::fp32), 32);
  EXPECT_EQ(per_cycle(cpu, Dtype::fp64), 16);
  EXPECT_EQ(per_cycle(cpu, Dtype::bf16), 64);
}

TEST(CpuPeak, parts_of_one_instruction_set_differ) {
  EXPECT_EQ(per_cycle(x86("GenuineIntel", 6, 0x3c, avx2, 1, 1), Dtype::fp32), 32);  // Haswell
  EXPECT_EQ(per_cycle(x86("GenuineIntel", 6, 0x8c, avx512, 1, 1), Dtype::fp32),
            32);  // Tiger Lake, a client
  EXPECT_EQ(per_cycle(x86("AuthenticAMD", 0x17, 0x01, avx2, 1, 1), Dtype::fp32), 16);  // Zen
  EXPECT_EQ(per_cycle(x86("AuthenticAMD", 0x17, 0x31, avx2, 1, 1), Dtype::fp32), 32);  // Zen 2
  EXPECT_EQ(per_cycle(x86("AuthenticAMD", 0x1a, 0x02, avx512, 1, 1), Dtype::fp32),
            64);  // Zen 5, server
  EXPECT_EQ(per_cycle(x86("AuthenticAMD", 0x1a, 0x24, avx512, 1, 1), Dtype::fp32),
            32);  // Zen 5, mobile
  auto xeon = x86("GenuineIntel", 6, 0x55, avx512, 1, 1);
  for (const auto& [name, flops] : {std::pair{"Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", 64},
                                    {"Intel(R) Xeon(R) Silver 4110 CPU @ 2.10GHz", 32},
                                    {"Intel(R) Xeon(R) Gold 5118 CPU @ 2.30GHz", 32},
                                    {"Intel(R) Xeon(R) Gold 5122 CPU @ 3.60GHz", 64}}) {
    xeon.model_name = name;
    EXPECT_EQ(per_cycle(xeon, Dtype::fp32), flops) << name;
  }
}

TEST(CpuPeak, a_dtype_without_an_instruction_has_no_peak) {
  const auto cpu = x86("AuthenticAMD", 0x19, 0x01, avx2, 1, 1);  // Zen 3
  EXPECT_FALSE(per_cycle(cpu, Dtype::bf16));
  EXPECT_FALSE(per_cycle(cpu, Dtype::fp16));
  EXPECT_FALSE(per_cycle(cpu, Dtype::int8));
}

TEST(CpuPeak, neoverse_cores_by_part) {
  CpuInfo cpu;
  cpu.vendor = "0x41";
  cpu.flags = {"asimd", "asimdhp", "bf16"};
  for (const auto& [part, flops] : {std::pair{0xd0c, 16}, {0xd40, 32}, {0xd49, 16}, {0xd4f, 32}}) {
    cpu.model = part;
    EXPECT_EQ(per_cycle(cpu, Dtype::fp32), flops) << part;
    EXPECT_EQ(per_cycle(cpu, Dtype::fp16), 2 * flops) << part;
    EXPECT_FALSE(per_cycle(cpu, Dtype::bf16)) << part;
  }
}

TEST(CpuPeak, a_missing_input_is_named_and_leaves_no_peak) {
  auto cpu = x86("AuthenticAMD", 0x19, 0x01, avx2, 2, 2e9);
  cpu.clock_hertz.reset();
  EXPECT_EQ(cpu_peak(cpu).source, "formula: no figure, the clock is not known");
  EXPECT_FALSE(cpu_peak(cpu).peak(Dtype::fp32));
  cpu.clock_hertz = 2e9;
  cpu.cores.reset();
  EXPECT_EQ(cpu_peak(cpu).source, "formula: no figure, the number of cores is not known");
  cpu.cores = 2;
  cpu.flags = {"sse2"};
  EXPECT_EQ(cpu_peak(cpu).source,
            "formula: no figure, the vector units of this processor are not known");
  EXPECT_FALSE(cpu_peak(cpu).peak(Dtype::fp32));
  CpuInfo arm;
  arm.vendor = "0x61";
  arm.model = 0x22;
  arm.flags = {"asimd"};
  EXPECT_FALSE(per_cycle(arm, Dtype::fp32));
}

TEST(CpuPeak, a_quota_gives_a_part_of_a_core) {
  const PeakTable table = cpu_peak(x86("AuthenticAMD", 0x19, 0x01, avx2, 1.5, 2e9));
  EXPECT_DOUBLE_EQ(table.peak(Dtype::fp32)->value, 1.5 * 2e9 * 32);
  EXPECT_EQ(table.source, "formula: 1.5 cores x 2 GHz (cpufreq maximum) x 2 x 8 fp32 FMA");
}

}  // namespace
}  // namespace flopmeter
