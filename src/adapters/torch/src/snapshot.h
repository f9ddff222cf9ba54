// SPDX-License-Identifier: Apache-2.0
//
// All counters at one moment, by operator and module.  Slower than totals_now(): for the ends of a
// count, not for each step.
#pragma once

#include "thread_counters.h"

#include <flopmeter/torch/op_counter.h>

#include <vector>

namespace flopmeter::torch_adapter {

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
/// What was counted between two snapshots; modulo 2^64, so exact.
Snapshot difference(const Snapshot& after, const Snapshot& before);
Counts to_counts(const Snapshot& difference);
/// Adds `times` what the snapshot holds to the counters.
void add_again(const Snapshot& difference, std::uint64_t times);

/// Nanoseconds that counting adds to one call, measured once.
double measured_call_cost();

}  // namespace flopmeter::torch_adapter
