// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/step_record.h>

#include <cstdint>
#include <optional>

namespace flopmeter {

/// One finished step on its way to the writer thread.
struct Slot {
  StepRecord record;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  bool counted = false;               ///< the record's FLOPs are the count of this step
  bool backed_off = false;            ///< counting had passed the budget
  std::uint64_t first_late_call = 0;  ///< whose work is known once the device has run it
  std::uint64_t last_late_call = 0;
  std::optional<double> counter_flops{};  ///< by hardware counters; filled in by the writer thread
};

}  // namespace flopmeter
