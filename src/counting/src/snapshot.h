// SPDX-License-Identifier: Apache-2.0
//
// All counters at one moment, by operator and module.  Slower than totals_now(): for the start and
// end of a count, not for each step.
#pragma once

#include "thread_counters.h"

#include <flopmeter/counting/op_counter.h>

#include <vector>

namespace flopmeter {

struct CellValue {
  std::uint64_t executed = 0;
  std::uint64_t model = 0;
  std::uint64_t calls = 0;
};
using PassValues = std::array<CellValue, pass_count>;

struct Snapshot {
  FlopTotals totals;
  std::vector<std::array<PassValues, dtype_count>> ops;
  std::vector<PassValues> modules;
  std::vector<std::uint64_t> unsupported;
};

Snapshot snapshot_now(bool modules);
/// The work between two snapshots, modulo 2^64 and therefore exact.
Snapshot difference(const Snapshot& after, const Snapshot& before);
Counts to_counts(const Snapshot& difference);
/// Adds the snapshot `times` times to the counters.
void add_again(const Snapshot& difference, std::uint64_t times);

}  // namespace flopmeter
