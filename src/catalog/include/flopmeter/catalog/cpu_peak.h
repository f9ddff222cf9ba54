// SPDX-License-Identifier: Apache-2.0
//
// The peak of a CPU, by formula: physical cores this process may use x highest clock x
// multiply-adds a core starts in a cycle x 2.  The multiply-adds follow from the instruction sets
// that the kernel lists and, where parts of one set differ, from the processor's family and model.
// It is an upper bound: all-core clocks under wide vectors are lower than the highest clock, and
// `flopmeter peak` measures what is achieved.
//
// A dtype for which the processor has no instruction has no figure (bf16 without avx512_bf16 or AMX
// is computed in fp32 and slower), nor has a part whose units or clock are not known.
#pragma once

#include <flopmeter/core/cpu_info.h>
#include <flopmeter/core/peak_table.h>

namespace flopmeter {

/// Source "formula: 2 cores x 2.1 GHz (cpufreq) x 2 x 16 fp32 FMA"; without a figure it says what
/// is missing.
PeakTable cpu_peak(const CpuInfo& cpu);

}  // namespace flopmeter
