// SPDX-License-Identifier: Apache-2.0
//
// BackwardHook: when autograd computes the gradients of what a model gave.  One hook on the
// output's node and one callback of the engine; no operator is looked at.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace flopmeter {

/// Tells when backward begins and ends, for as long as it exists.
class BackwardHook {
 public:
  /// `begins` and `ends` are called in the thread that made this, without Python's lock.
  BackwardHook(std::function<void()> begins, std::function<void()> ends);
  ~BackwardHook();
  BackwardHook(const BackwardHook&) = delete;
  BackwardHook& operator=(const BackwardHook&) = delete;
  BackwardHook(BackwardHook&&) = delete;
  BackwardHook& operator=(BackwardHook&&) = delete;

  /// Watches for the gradient of a tensor, given by the address of its c10::TensorImpl.  Whether
  /// that is told: not on a device, whose backward runs in a thread of the engine.  Empty where no
  /// gradient will come.
  std::optional<bool> watch(std::uintptr_t tensor);

  /// Whether a backward began, in any thread, since a tensor was last watched or this was asked.
  bool take_begun();

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< held by the hooks too: a graph may outlive the watch
};

}  // namespace flopmeter
