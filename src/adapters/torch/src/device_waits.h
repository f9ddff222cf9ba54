// SPDX-License-Identifier: Apache-2.0
//
// Operators in which the host waits for the device, or that copy between both: they are reported to
// the monitor before and after.
#pragma once

namespace flopmeter::torch_adapter {

/// Once, when the device clock is open.
void intercept_waits();

/// Copies of this thread are not reported while it lives.
class UnreportedCopies {
 public:
  UnreportedCopies();
  ~UnreportedCopies();
  UnreportedCopies(const UnreportedCopies&) = delete;
  UnreportedCopies& operator=(const UnreportedCopies&) = delete;
  UnreportedCopies(UnreportedCopies&&) = delete;
  UnreportedCopies& operator=(UnreportedCopies&&) = delete;

 private:
  bool before_;
};

}  // namespace flopmeter::torch_adapter
