// SPDX-License-Identifier: Apache-2.0
//
// Peak of a CPU, by formula: physical cores available to this process x maximum clock x
// multiply-adds issued per core and cycle x 2.  The multiply-adds follow from the instruction sets
// that the kernel lists and, if processors with one instruction set differ, from the family and
// model.  The result is an upper bound, because all-core clocks with wide vectors are lower;
// `flopmeter peak` measures the achieved rate.
//
// A dtype without instructions has no peak (bf16 without avx512_bf16 or AMX is computed in fp32,
// more slowly).  Neither has a processor whose units or clock are unknown.
#pragma once

#include <flopmeter/core/cpu_info.h>
#include <flopmeter/core/peak_table.h>

namespace flopmeter {

/// Source "formula: 2 cores x 2.1 GHz (cpufreq) x 2 x 16 fp32 FMA"; without a peak, the source
/// names the missing input.
PeakTable cpu_peak(const CpuInfo& cpu);

}  // namespace flopmeter
