// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/catalog/cpu_peak.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

namespace flopmeter {
namespace {

/// Vector units of one core: multiply-adds per cycle, and their width.
struct VectorUnits {
  int count = 0;
  int bits = 0;
};

bool has(const CpuInfo& cpu, std::string_view flag) {
  return std::find(cpu.flags.begin(), cpu.flags.end(), flag) != cpu.flags.end();
}

bool names(const CpuInfo& cpu, std::string_view word) {
  return cpu.model_name.find(word) != std::string::npos;
}

/// Skylake server: "2 x 512-bit FMA (varies by SKU)" (WikiChip, FLOPS).  Which SKUs have one unit
/// is from memory, not read in a source: Bronze, Silver and Gold 5xxx but for 5122 and 5222.
bool has_single_avx512_unit(const CpuInfo& cpu) {
  return names(cpu, "Bronze") || names(cpu, "Silver") ||
         (names(cpu, "Gold 5") && !names(cpu, "Gold 5122") && !names(cpu, "Gold 5222"));
}

VectorUnits intel_avx512(const CpuInfo& cpu) {
  // Two 512-bit units on server cores (WikiChip, FLOPS).  The model numbers are from memory:
  // Skylake/Cascade/Cooper Lake, Ice Lake-SP and -D, Sapphire Rapids, Granite Rapids (-SP and -D),
  // Emerald Rapids.
  static constexpr auto servers = std::to_array<int>({0x55, 0x6a, 0x6c, 0x8f, 0xad, 0xae, 0xcf});
  const bool server =
      cpu.model && std::find(servers.begin(), servers.end(), *cpu.model) != servers.end();
  const bool single = !server || (*cpu.model == 0x55 && has_single_avx512_unit(cpu));
  return {single ? 1 : 2, 512};
}

VectorUnits amd(const CpuInfo& cpu) {
  const int family = cpu.family.value_or(0);
  const int model = cpu.model.value_or(0);
  // Zen and Zen+ split 256-bit operations over 128-bit pipes (from memory).
  if (family == 0x18 || (family == 0x17 && model < 0x30)) return {2, 128};
  // Zen 5 has 512-bit pipes, the mobile parts 256-bit ones (from memory, as are the model numbers).
  if (family == 0x1a && has(cpu, "avx512f")) {
    const bool mobile = (model >= 0x20 && model < 0x30) || (model >= 0x60 && model < 0x80);
    return {2, mobile ? 256 : 512};
  }
  // Zen 2 to 4: FMA on two 256-bit pipes (AMD optimization guide for Zen 4, as quoted in LLVM's
  // X86ScheduleZnver4.td).
  return {2, 256};
}

std::optional<VectorUnits> x86(const CpuInfo& cpu) {
  if (!has(cpu, "avx2") || !has(cpu, "fma")) return std::nullopt;
  if (cpu.vendor == "AuthenticAMD" || cpu.vendor == "HygonGenuine") return amd(cpu);
  if (cpu.vendor != "GenuineIntel") return std::nullopt;
  if (has(cpu, "avx512f")) return intel_avx512(cpu);
  return VectorUnits{2, 256};  // Haswell and later: stackoverflow.com/questions/15655835
}

std::optional<VectorUnits> arm(const CpuInfo& cpu) {
  struct Part {
    std::string_view implementer;
    int part;
    VectorUnits units;
  };
  // N2 and V2: pipes in LLVM's AArch64SchedNeoverse{N2,V2}.td, which follow Arm's optimization
  // guides.  N1 and V1: brendanjameslynskey.github.io/Neoverse/02-microarchitecture.  A64FX: from
  // memory.
  static constexpr auto parts = std::to_array<Part>({
      {"0x41", 0xd0c, {2, 128}},  // Neoverse N1: two ASIMD pipes
      {"0x41", 0xd40, {2, 256}},  // Neoverse V1: two 256-bit SVE pipes
      {"0x41", 0xd49, {2, 128}},  // Neoverse N2: two SVE2 pipes
      {"0x41", 0xd4f, {4, 128}},  // Neoverse V2: four SVE2 pipes
      {"0x46", 0x001, {2, 512}},  // A64FX
  });
  if (!has(cpu, "asimd") || !cpu.model) return std::nullopt;
  for (const Part& part : parts) {
    if (part.implementer == cpu.vendor && part.part == *cpu.model) return part.units;
  }
  return std::nullopt;
}

/// Multiply-adds per core and cycle, by dtype; 0 if there is no instruction.
struct CoreRates {
  VectorUnits units;
  std::array<int, dtype_count> fma{};
  bool amx = false;

  int& operator[](Dtype dtype) { return fma[static_cast<std::size_t>(dtype)]; }
};

std::optional<CoreRates> core_rates(const CpuInfo& cpu) {
  const bool is_arm = has(cpu, "asimd");
  const auto units = is_arm ? arm(cpu) : x86(cpu);
  if (!units) return std::nullopt;
  CoreRates rates{*units};
  const int lanes = units->count * units->bits / 32;
  rates[Dtype::fp32] = lanes;
  rates[Dtype::fp64] = lanes / 2;
  // Half precision in twice the lanes: AVX512-FP16, ARM FEAT_FP16.
  if (has(cpu, "avx512_fp16") || has(cpu, "asimdhp")) rates[Dtype::fp16] = 2 * lanes;
  // VDPBF16PS: two products per 32-bit lane; VPDPBUSD: four.  The same issue rate as an fp32 FMA is
  // assumed, without a source.  The rates of Arm's BFMMLA and SMMLA are unknown, so they have no
  // peak.
  if (has(cpu, "avx512_bf16")) rates[Dtype::bf16] = 2 * lanes;
  if (has(cpu, "avx512_vnni") || has(cpu, "avx_vnni")) rates[Dtype::int8] = 4 * lanes;
  // TMUL: TDPBF16PS is 16 x 16 x 32 products in 16 cycles, 512 multiply-adds per cycle; the int8
  // form is twice that (Intel: 1024 bf16 or 2048 int8 operations per core and cycle).
  constexpr int tile = 512;
  if (has(cpu, "amx_bf16")) rates[Dtype::bf16] = tile;
  if (has(cpu, "amx_fp16")) rates[Dtype::fp16] = tile;
  if (has(cpu, "amx_int8")) rates[Dtype::int8] = 2 * tile;
  rates.amx = has(cpu, "amx_bf16") || has(cpu, "amx_int8");
  return rates;
}

}  // namespace

PeakTable cpu_peak(const CpuInfo& cpu) {
  PeakTable table;
  table.device = cpu.model_name.empty() ? "CPU" : cpu.model_name;
  const auto rates = core_rates(cpu);
  if (!cpu.cores || !cpu.clock_hertz || !rates) {
    const std::string_view missing = !cpu.cores ? "the number of cores is not known"
                                     : !cpu.clock_hertz
                                         ? "the clock is not known"
                                         : "the vector units of this processor are not known";
    table.source = "formula: no figure, " + std::string{missing};
    return table;
  }
  const double cycles_per_second = *cpu.cores * *cpu.clock_hertz;
  for (std::size_t dtype = 0; dtype < dtype_count; ++dtype) {
    if (rates->fma[dtype] > 0)
      table.peaks[dtype] = FlopsPerSecond{2 * cycles_per_second * rates->fma[dtype]};
  }
  table.source = "formula: " + shortest(*cpu.cores) + (*cpu.cores == 1 ? " core x " : " cores x ") +
                 shortest(std::round(*cpu.clock_hertz / 1e7) / 100) + " GHz (" + cpu.clock_source +
                 ") x " + std::to_string(rates->units.count) + " x " +
                 std::to_string(rates->units.bits / 32) + " fp32 FMA";
  if (rates->amx) table.source += ", and AMX";
  return table;
}

}  // namespace flopmeter
