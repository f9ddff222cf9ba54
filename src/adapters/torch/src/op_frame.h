// SPDX-License-Identifier: Apache-2.0
//
// OpFrame: an operator or autograd node that runs while a profile is collected.
#pragma once

#include "device_profile.h"
#include "op_rows.h"

#include <flopmeter/adapter_abi.h>

#include <ATen/record_function.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace flopmeter::torch_adapter {

struct ThreadProfile;

/// An operator or autograd node on a thread's stack.
struct OpFrame : at::ObserverContext {
  using Time = std::chrono::steady_clock::time_point;
  Time entered;  ///< before the profiler's own work, which belongs to no operator
  Time begin;
  Time idle_since;  ///< of a node: when its last operator ended
  OpFrame* parent = nullptr;
  double children = 0;
  int size = 0;
  bool is_node = false;
  bool has_nodes = false;  ///< an operator such as aten::_backward, in which autograd runs
  bool in_backward = false;
  bool recompute = false;     ///< or a node in which a recomputation ran
  bool compute = false;       ///< or inside an operator that is
  bool unknown_work = false;  ///< its FLOPs do not follow from its arguments
  bool across_devices = false;
  std::uint8_t kind = FLOPMETER_KIND_MEMORY;
  std::uint8_t phase = 0;
  std::string shape;
  std::uint64_t flops = 0;
  std::uint64_t bytes = 0;
  std::shared_ptr<ThreadProfile> thread;

  // In device times:
  bool of_others = false;  ///< made of operators that launch its kernels
  bool calls_others = false;
  bool begun = false;  ///< an event separates it, or an operator around it, from work before
  int call = DeviceProfile::no_operator;  ///< that its kernels belong to
};

/// Reads size and device of the arguments.  Returns whether one is on a device.
bool read_arguments(const at::RecordFunction& function, OpFrame& frame, bool with_shape);
/// Reads FLOPs and shapes of the outermost operator that has a rule.
void read_cost(const at::RecordFunction& function, const void* rule, OpFrame& frame);
/// The row of a profile that the operator belongs to; moves the shape out of the frame.
RowKey row_key(const at::RecordFunction& function, OpFrame& frame, bool tiny);

}  // namespace flopmeter::torch_adapter
