// SPDX-License-Identifier: Apache-2.0
//
// All counters at one moment, by operator and module.  Slower than totals_now(): for the start and
// end of a count, not for each step.
#pragma once

#include "thread_counters.h"

#include <flopmeter/counting/op_counter.h>

#include <utility>
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

/// Work that is added to the counters again and again.
class Replay {
 public:
  explicit Replay(const Snapshot& difference);
  /// Adds the work `times` times; counters are modulo 2^64, so that -1 takes it out.
  void add(std::uint64_t times) const;

 private:
  std::vector<std::pair<Cell*, CellValue>> cells_;
  std::vector<std::pair<Counter*, std::uint64_t>> counters_;
};

}  // namespace flopmeter
