// SPDX-License-Identifier: Apache-2.0
//
// Attention over packed sequences whose starts are on a device, and matmuls of groups whose ends
// are.  Such a call is counted with an upper bound.  Its starts are copied to the host without
// waiting, and what they change is known when the device has reached the copy.
#pragma once

#include "op_table.h"
#include "snapshot.h"

#include <flopmeter/core/flop_counter.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace flopmeter {

/// Adds users of late_work(); without users no copies are made.
void add_late_users(int change);

/// Replaces the cost of a call by the exact one if its starts are on the host; if they are on a
/// device, remembers the call.
void resolve_starts(const OpEntry& entry, const FlopmeterCall& call, OpCost& cost) noexcept;

/// Number of calls remembered so far.  Later calls do not share copies with earlier ones.
std::uint64_t late_calls() noexcept;

/// As FlopCounter::late_work().
FlopTotals late_work(std::uint64_t first, std::uint64_t last) noexcept;

struct LateCall;

/// While alive, calls are remembered for a count.
class LateSpan {
 public:
  LateSpan();
  ~LateSpan();
  LateSpan(const LateSpan&) = delete;
  LateSpan& operator=(const LateSpan&) = delete;
  LateSpan(LateSpan&&) = delete;
  LateSpan& operator=(LateSpan&&) = delete;

  void stop();
  /// Of the calls until stop(): replaces their bounds by what is known by now.
  void resolve(Snapshot& work) const;

 private:
  std::uint64_t first_;
  bool stopped_ = false;
  std::vector<std::shared_ptr<const LateCall>> calls_;
};

}  // namespace flopmeter
