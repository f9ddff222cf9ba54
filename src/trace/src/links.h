// SPDX-License-Identifier: Apache-2.0
//
// Which operator launched what: from a kernel to its launch on the host, and from there to the
// operators around it.
#pragma once

#include <flopmeter/trace/trace.h>

#include <cstdint>
#include <vector>

namespace flopmeter {

inline constexpr std::uint32_t no_event = no_text;

/// Indexes of host events, by the index of a host or device event; `no_event` if there is none.
struct Links {
  std::vector<std::uint32_t>
      parent;  ///< of a host event: the innermost operator or annotation around it
  std::vector<std::uint32_t> launch;  ///< of a device event: the call that launched it
  std::vector<std::uint32_t> op;  ///< of a device event: the innermost operator around the launch
  std::vector<bool> launched;     ///< of a host event: it, or something in it, launched device work
  TraceNs first_linked = 0;       ///< start of the first device event that has a launch
  bool any_launch = false;

  /// Work of the step before the trace: it was launched before the recording began.
  [[nodiscard]] bool is_carried_over(const Trace& trace, std::size_t device_event) const {
    return any_launch && launch[device_event] == no_event &&
           trace.device_events[device_event].start < first_linked;
  }
};

/// The innermost operator that is `event` or around it; `no_event` if there is none.
std::uint32_t innermost_op(const Trace& trace, const Links& links, std::uint32_t event);

/// Sorts the trace's host events by thread and start, outer ones first, and links them.
Links link_events(Trace& trace);

}  // namespace flopmeter
