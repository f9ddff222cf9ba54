// SPDX-License-Identifier: Apache-2.0
#include "context.h"

#include "module_log.h"

#include <ATen/SequenceNumber.h>

#include <algorithm>
#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace flopmeter::torch_adapter {

constinit thread_local ThreadContext thread_context __attribute__((tls_model("initial-exec")));

namespace {

using torch::autograd::Node;

/// The hooks around the last forward of any thread.  Threads of the engine, which run no forward,
/// start from them.
std::atomic<int> forward_depth{0};
std::atomic<const void*> forward_outermost{nullptr};
std::atomic<const void*> forward_innermost{nullptr};

SavedTensorHooks last_forward_hooks() {
  return {.depth = forward_depth.load(std::memory_order_relaxed),
          .outermost = forward_outermost.load(std::memory_order_relaxed),
          .innermost = forward_innermost.load(std::memory_order_relaxed)};
}

/// The custom node that is running, recorded in the thread-local state.
struct OpenNode : c10::DebugInfoBase {
  TaskId task = no_task;
  const Node* node = nullptr;
  void* counters = nullptr;
  std::uint64_t first_sequence = 0;  ///< autograd's sequence number at the first pending operator
  bool has_pending = false;
};

OpenNode* current_open_node() {
  return static_cast<OpenNode*>(c10::ThreadLocalDebugInfo::get(debug_info_kind));
}

/// Whether torch did not generate the code of this node.  Cached by type: the cast is slow.
bool is_custom(Node& node) {
  struct Known {
    const void* type = nullptr;
    bool custom = false;
  };
  thread_local std::array<Known, 64> known;
  const void* type = *reinterpret_cast<const void* const*>(&node);
  Known& slot = known[(reinterpret_cast<std::uintptr_t>(type) >> 4) % known.size()];
  if (slot.type != type) {
    slot = {.type = type,
            .custom = dynamic_cast<torch::autograd::TraceableFunction*>(&node) == nullptr};
  }
  return slot.custom;
}

/// Whether the running node may run any code, a checkpoint's forward included.
bool may_run_anything(Node* node) {
  return node != nullptr ? is_custom(*node) : !knows_current_node;
}

/// A nested backward runs: what the open node did since the oldest node of the walked graph was
/// recompute.
void settle_by_nested(OpenNode& open, const Node* node) {
  if (!open.has_pending) return;
  std::uint64_t oldest = node != nullptr ? node->sequence_nr() : UINT64_MAX;
  if (const auto* nodes = torch::autograd::get_current_graph_task_nodes_in_graph()) {
    for (const Node* each : *nodes) oldest = std::min<std::uint64_t>(oldest, each->sequence_nr());
  }
  // Work under no_grad before the first node was created leaves no trace; a checkpoint runs nothing
  // but the forward.
  const bool from_the_start = oldest < open.first_sequence || open.node == nullptr ||
                              open.node->name().find("CheckpointFunction") != std::string::npos;
  host->settle(open.counters,
               from_the_start ? FLOPMETER_RECOMPUTE : FLOPMETER_BACKWARD,
               FLOPMETER_RECOMPUTE);
  open.has_pending = false;
}

FlopmeterPass pending_pass(TaskId task, const Node* node, OpenNode* open) {
  const std::uint64_t sequence = at::sequence_number::peek();
  void* counters = host->thread_counters();
  if (open == nullptr || open->task != task || open->node != node || open->counters != counters) {
    auto created = std::make_shared<OpenNode>();
    open = created.get();
    open->task = task;
    open->node = node;
    open->counters = counters;
    c10::ThreadLocalDebugInfo::_push(debug_info_kind, std::move(created));
  }
  if (!open->has_pending) {
    // Pending work belongs to an earlier node without a nested backward.
    host->settle(counters, FLOPMETER_BACKWARD, FLOPMETER_BACKWARD);
    open->has_pending = true;
    open->first_sequence = sequence;
  }
  return sequence == open->first_sequence ? FLOPMETER_PENDING_FIRST : FLOPMETER_PENDING;
}

/// Whether the processor multiplies bf16 tiles (AMX).
bool has_bf16_tiles() {
#ifdef __x86_64__
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 22U & 1U) != 0;
#else
  return false;
#endif
}

}  // namespace

[[gnu::noinline]] void record_forward_hooks() {
  const SavedTensorHooks hooks = current_hooks();
  if (!thread_context.in_backward && hooks.depth >= thread_context.outside.depth) return;
  thread_context.in_backward = false;
  thread_context.ran_forward = true;
  thread_context.outside = hooks;
  forward_depth.store(hooks.depth, std::memory_order_relaxed);
  forward_outermost.store(hooks.outermost, std::memory_order_relaxed);
  forward_innermost.store(hooks.innermost, std::memory_order_relaxed);
}

[[gnu::noinline]] FlopmeterPass pass_in_backward(TaskId task) {
  const auto node = current_node();
  OpenNode* open = current_open_node();
  if (open != nullptr && open->task != task) settle_by_nested(*open, node.get());
  const SavedTensorHooks hooks = current_hooks();
  if (thread_local TaskId last = no_task;
      std::exchange(last, task) != task && !thread_context.ran_forward) {
    thread_context.outside = last_forward_hooks();
  }
  thread_context.in_backward = true;
  if (recomputes(hooks)) return FLOPMETER_RECOMPUTE;
  thread_context.outside = hooks;
  if (may_run_anything(node.get())) return pending_pass(task, node.get(), open);
  return FLOPMETER_BACKWARD;
}

std::uint32_t module_of_pass(FlopmeterPass pass) {
  // Recomputed work runs inside its module's forward; backward work belongs to the module in which
  // its node was created.
  if (pass == FLOPMETER_FORWARD || (pass != FLOPMETER_BACKWARD && thread_context.module != 0))
    return thread_context.module;
  const auto node = current_node();
  return node != nullptr ? module_of_node(node->thread_id(), node->sequence_nr())
                         : thread_context.module;
}

// If the settings allow bf16, oneDNN takes it on AMX only: on AVX-512 alone, with or without bf16
// instructions, its verbose output shows fp32 kernels.
const bool cpu_shortens_fp32 = has_bf16_tiles();

}  // namespace flopmeter::torch_adapter
