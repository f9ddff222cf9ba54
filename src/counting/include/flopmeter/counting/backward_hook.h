// SPDX-License-Identifier: Apache-2.0
//
// BackwardHook: when autograd computes the gradients of a model's outputs.  It adds one hook to the
// output's node and one callback to the engine, and no cost per operator.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace flopmeter {

/// Reports when backward begins and ends while it exists.
class BackwardHook {
 public:
  /// `begins` and `ends` are called in the thread that created the hook, without Python's lock.
  /// Throws std::runtime_error without an adapter.
  BackwardHook(std::function<void()> begins, std::function<void()> ends);
  ~BackwardHook();
  BackwardHook(const BackwardHook&) = delete;
  BackwardHook& operator=(const BackwardHook&) = delete;
  BackwardHook(BackwardHook&&) = delete;
  BackwardHook& operator=(BackwardHook&&) = delete;

  /// Hooks the tensor with this c10::TensorImpl address.  False on a device: its backward runs in a
  /// thread of the engine and is not reported.  Empty if the tensor has no gradient.
  std::optional<bool> watch(std::uintptr_t tensor);

  /// Whether a backward began, in any thread, since the last call or watch().
  bool take_begun();

 private:
  std::function<void()> begins_;
  std::function<void()> ends_;
  void* hook_;
};

}  // namespace flopmeter
