// SPDX-License-Identifier: Apache-2.0
//
// Where an operator call stands: its pass, its module, and what its fp32 work really runs as.
//
// Outside a graph task (a running backward) everything is forward.  Inside one:
//   - saved-tensor hooks on top of those around the task: a non-reentrant checkpoint is
//   recomputing;
//   - otherwise in one of torch's own nodes: backward, whether or not it records a graph
//   (create_graph);
//   - in a custom function's node: open (see counters.h).  A mark is left in the thread-local state
//   that the autograd
//     engine restores after each node and hands to nested graph tasks: an operator that finds the
//     mark of another task runs in a backward nested in the marked node, and so settles that node's
//     open work.
#pragma once

#include "arguments.h"
#include "op_table.h"

#include <ATen/SavedTensorHooks.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/graph_task.h>

namespace flopmeter::torch_adapter {

using TaskId = std::intptr_t;
inline constexpr TaskId no_task = -1;

inline TaskId current_task() {
#if FLOPMETER_TORCH_VERSION >= 200
  return torch::autograd::get_current_graph_task_id();
#else
  const void* nodes = torch::autograd::get_current_graph_task_nodes_in_graph();
  return nodes != nullptr ? reinterpret_cast<TaskId>(nodes) : no_task;
#endif
}

/// The saved-tensor hooks in force.  The innermost one is known by its unpack function, which lives
/// as long as the tensors it is to unpack (1.13 does not tell the depth beyond 1).
struct Hooks {
  int depth = 0;
  const void* innermost = nullptr;
};

inline Hooks hooks_now() {
#if FLOPMETER_TORCH_VERSION >= 200
  const auto& stack = at::SavedTensorDefaultHooks::get_tls_state().stack;
  if (stack.empty()) [[likely]]
    return {};
  const auto& unpack = stack.top().second;
  return {.depth = static_cast<int>(stack.size()),
          .innermost = unpack.ptr(&unpack.pyinterpreter())};
#else
  const void* unpack = at::SavedTensorDefaultHooks::get_hooks().second;
  return {.depth = unpack != nullptr ? 1 : 0, .innermost = unpack};
#endif
}

/// Per thread, read on the hot path.
struct ThreadContext {
  int depth = 0;             ///< inside a counted operator: what it calls is part of it
  bool in_backward = false;  ///< the last operator was
  bool ran_forward = false;
  Hooks outside{.depth = 1 << 30};  ///< the fewest hooks seen in this forward or backward: those
                                    ///< that recompute come on top
  std::uint32_t module = 0;         ///< innermost open ModuleScope
};
extern constinit thread_local ThreadContext context __attribute__((tls_model("initial-exec")));

PassAttribution attribution_in_backward(TaskId task);
void note_forward_hooks();

/// Saved-tensor hooks that came on top of those around the backward: a non-reentrant checkpoint is
/// computing its forward again.
inline bool recomputes(const Hooks& hooks) {
  return hooks.depth > context.outside.depth ||
         (hooks.depth == context.outside.depth && hooks.innermost != context.outside.innermost);
}

inline PassAttribution booking_now() {
  const TaskId task = current_task();
  if (task != no_task) [[unlikely]]
    return attribution_in_backward(task);
  // With none around it, no operator of this forward can have fewer.
  if (context.in_backward || context.outside.depth != 0) [[unlikely]]
    note_forward_hooks();
  return PassAttribution::forward;
}
/// The module that work with this attribution belongs to; 0 for none, and while nobody asks.
std::uint32_t module_now(PassAttribution attribution);

/// Whether this processor has the units with which oneDNN computes fp32 work in a shorter format.
extern const bool cpu_shortens_fp32;
Dtype fp32_setting(c10::DeviceType device, Precision precision);
/// What fp32 work on this device is computed in under the current settings.
inline Dtype fp32_compute_dtype(c10::DeviceType device, Precision precision) {
  if (device == c10::DeviceType::CPU && !cpu_shortens_fp32) return Dtype::fp32;
  return fp32_setting(device, precision);
}

}  // namespace flopmeter::torch_adapter
