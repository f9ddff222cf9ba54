// SPDX-License-Identifier: Apache-2.0
//
// Time in collectives: adapters tell when one starts and completes and when counted operations run
// beside it, the monitor reads what a step spent.  A rank that arrives last at a collective waits
// least in it, which is how a late rank is found without comparing clocks.
#pragma once

#include <flopmeter/core/phase.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace flopmeter {

/// Cumulative.  Collectives that run at the same time count once.
struct CommunicationTotals {
  /// Time in which a collective was under way and no counted operation ran, by the phase that it
  /// fell in: whoever changes the phase settles before.
  std::array<std::int64_t, phase_count> waited_ns{};
  std::int64_t overlapped_ns = 0;  ///< time beside counted operations
  std::int64_t collectives = 0;    ///< that completed
};

/// Any thread; neither locks nor waits.
CommunicationTotals communication_now() noexcept;
/// Accounts for collectives up to this moment, as whoever ends a step or a phase needs it: the news
/// of a collective's end may come a little after the thread that waited for it went on.
void settle_communication() noexcept;

/// A collective starts; call collective_ended() once when it has completed, from any thread.
void collective_began() noexcept;
void collective_ended() noexcept;

/// Collectives under way; an operation needs telling about only while there are some.
extern std::atomic<std::int32_t> collectives_under_way;
void operation_began() noexcept;
void operation_ended() noexcept;

}  // namespace flopmeter
