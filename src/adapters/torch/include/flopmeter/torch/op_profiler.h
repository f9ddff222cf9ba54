// SPDX-License-Identifier: Apache-2.0
//
// OpProfiler: everything that ran, for a step now and then.  Counting sees only operators that bear
// FLOPs; a profile watches all of them, which costs some tens of percent while it is on and nothing
// when it is off.
#pragma once

#include <flopmeter/core/op_profile.h>

#include <memory>

namespace flopmeter {

/// Watches all operators of all threads between start and stop.  One at a time in a process.
class OpProfiler {
 public:
  /// Starts watching; throws std::logic_error while another profile runs.  An operator shorter than
  /// `tiny` that bears no FLOPs is one that its launch outweighs.
  explicit OpProfiler(Seconds tiny = {10e-6});
  ~OpProfiler();
  OpProfiler(const OpProfiler&) = delete;
  OpProfiler& operator=(const OpProfiler&) = delete;
  OpProfiler(OpProfiler&&) = delete;
  OpProfiler& operator=(OpProfiler&&) = delete;

  /// Ends watching; operators that still run are left out.
  OpProfile stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flopmeter
