// SPDX-License-Identifier: Apache-2.0
//
// Time in collectives. Adapters report when a collective starts and completes and when counted
// operators run at the same time; the monitor reads the totals. The rank that arrives last at a
// collective waits least in it, so late ranks are found without comparing clocks.
#pragma once

#include <flopmeter/core/phase.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace flopmeter {

/// Cumulative.  Collectives that run at the same time count once.
struct CommunicationTotals {
  /// Time with a collective and without a counted operator, by phase. Call settle_communication()
  /// before the phase changes.
  std::array<std::int64_t, phase_count> waited_ns{};
  std::int64_t overlapped_ns = 0;  ///< time that overlaps counted operators
  std::int64_t collectives = 0;    ///< completed ones
};

/// Any thread; neither locks nor waits.
CommunicationTotals communication_now() noexcept;
/// Accounts for collectives up to now. Call it at the end of a step or a phase, because the end of
/// a collective may be reported after the waiting thread continues.
void settle_communication() noexcept;

/// A collective starts; call collective_ended() once when it has completed, from any thread.
void collective_began() noexcept;
void collective_ended() noexcept;

/// Running collectives; operators are reported only while there are any.
extern std::atomic<std::int32_t> collectives_under_way;
void operation_began() noexcept;
void operation_ended() noexcept;

}  // namespace flopmeter
