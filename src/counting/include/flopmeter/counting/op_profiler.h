// SPDX-License-Identifier: Apache-2.0
//
// OpProfiler: all operators of one step, with their times.  Counting intercepts only operators that
// execute FLOPs; a profile records all of them, which slows the step by tens of percent while it is
// on and costs nothing while it is off.
#pragma once

#include <flopmeter/core/op_profile.h>

#include <optional>

namespace flopmeter {

/// Records the operators of all threads until stop().  One at a time per process.
class OpProfiler {
 public:
  /// Throws std::logic_error while another profile runs.  An operator without FLOPs that is shorter
  /// than `tiny` takes less time than its launch.
  /// `device_times`: those of a device's kernels, if there is a device whose events are timed.
  explicit OpProfiler(Seconds tiny = {10e-6}, bool device_times = false);
  ~OpProfiler();
  OpProfiler(const OpProfiler&) = delete;
  OpProfiler& operator=(const OpProfiler&) = delete;
  OpProfiler(OpProfiler&&) = delete;
  OpProfiler& operator=(OpProfiler&&) = delete;

  /// Ends the profile, without the operators that still run.  Empty when called again.
  OpProfile stop();
  /// The same of device times, in the training thread.  Empty while the device has not reached the
  /// profile's end: call it again later.
  std::optional<OpProfile> take();

 private:
  bool running_ = true;
};

}  // namespace flopmeter
