// SPDX-License-Identifier: Apache-2.0
//
// The circumstances of an operator call: its pass, its module, and the dtype in which fp32 work
// runs.
//
// Outside a graph task (a running backward) everything is forward.  Inside one:
//   - saved-tensor hooks on top of those around the task: a non-reentrant checkpoint recomputes;
//   - otherwise in one of torch's own nodes: backward, also if it records a graph (create_graph);
//   - in the node of a custom function: pending (see FlopmeterPass).  The node is recorded in the
//     thread-local state that the autograd engine restores after each node and passes to nested
//     graph tasks.  An operator that finds a record of another task runs in a backward nested in
//     the recorded node, which settles the pending work of that node.
#pragma once

#include "host.h"
#include "torch_version.h"

#include <ATen/core/Tensor.h>

#include <atomic>

namespace flopmeter::torch_adapter {

/// Per thread, read on the hot path.
struct ThreadContext {
  int depth = 0;             ///< inside counted work: operators in it are part of it
  unsigned calls = 0;        ///< counted or unsupported
  bool in_graph = false;     ///< the outermost counted work is a compiled graph
  bool in_backward = false;  ///< the last operator was
  bool ran_forward = false;
  /// The fewest hooks in this forward or backward: those of a recomputation come on top.
  SavedTensorHooks outside{.depth = 1 << 30};
  std::uint32_t module = 0;  ///< innermost open module
};
extern constinit thread_local ThreadContext thread_context
    __attribute__((tls_model("initial-exec")));

/// Users of counting and of attribution to modules; zero turns them off.
inline std::atomic<int> counting_users{0};
inline std::atomic<int> module_users{0};

FlopmeterPass pass_in_backward(TaskId task);
void record_forward_hooks();

/// Saved-tensor hooks on top of those around the backward: a non-reentrant checkpoint recomputes
/// its forward.  Hooks around the forward alone, as for offloading, are not around the backward.
inline bool recomputes(const SavedTensorHooks& hooks) {
  const SavedTensorHooks& outside = thread_context.outside;
  if (hooks.depth > outside.depth) return true;
  return hooks.outermost != outside.outermost
             ? hooks.depth != 0
             : hooks.depth == outside.depth && hooks.innermost != outside.innermost;
}

/// The pass that an operator which now runs in this thread belongs to.
inline FlopmeterPass current_pass() {
  const TaskId task = current_task();
  if (task != no_task) [[unlikely]]
    return pass_in_backward(task);
  // Once an operator of this forward ran without hooks, no other can have fewer.
  if (thread_context.in_backward || thread_context.outside.depth != 0) [[unlikely]]
    record_forward_hooks();
  return FLOPMETER_FORWARD;
}

/// The module of an operator with this pass.
std::uint32_t module_of_pass(FlopmeterPass pass);
inline std::uint32_t current_module(FlopmeterPass pass) {
  return module_users.load(std::memory_order_relaxed) == 0 ? FLOPMETER_MODULES_OFF
                                                           : module_of_pass(pass);
}

/// Whether this processor has units with which oneDNN runs fp32 work in a shorter dtype.
extern const bool cpu_shortens_fp32;

/// The dtype in which fp32 work on this device runs under the current settings.
inline FlopmeterDtype fp32_compute_dtype(c10::DeviceType device, FlopmeterPrecision precision) {
  if (device == c10::DeviceType::CPU) [[likely]] {
    // oneDNN takes TF32 on no processor.
    return cpu_shortens_fp32 && fp32_setting(Fp32Backend::cpu, precision) == FLOPMETER_BF16
               ? FLOPMETER_BF16
               : FLOPMETER_FP32;
  }
  return device == c10::DeviceType::CUDA ? fp32_setting(Fp32Backend::cuda, precision)
                                         : FLOPMETER_FP32;
}

}  // namespace flopmeter::torch_adapter
