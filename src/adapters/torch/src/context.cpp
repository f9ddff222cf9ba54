// SPDX-License-Identifier: Apache-2.0
#include "context.h"

#include "module_log.h"

#include <ATen/Context.h>
#include <ATen/SequenceNumber.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <utility>
#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace flopmeter::torch_adapter {

constinit thread_local ThreadContext context __attribute__((tls_model("initial-exec")));

namespace {

using torch::autograd::Node;

#if FLOPMETER_TORCH_VERSION >= 200
constexpr std::string_view mark_name = "flopmeter";
const c10::DebugInfoKind mark_kind(&mark_name);
auto current_node() {
  return torch::autograd::get_current_node();
}
#else
constexpr auto mark_kind = static_cast<c10::DebugInfoKind>(0x66);
// 1.13 does not tell: every node is then taken for one that may run anything.
std::shared_ptr<Node> current_node() {
  return nullptr;
}
#endif

/// The hooks around the last forward of any thread: where the engine's own threads, which never run
/// one, begin.
std::atomic<int> forward_depth{0};
std::atomic<const void*> forward_innermost{nullptr};

Hooks last_forward_hooks() {
  return {.depth = forward_depth.load(std::memory_order_relaxed),
          .innermost = forward_innermost.load(std::memory_order_relaxed)};
}

/// Says, to whoever inherits the thread-local state, that a custom node is running.
struct Mark : c10::DebugInfoBase {
  TaskId task = no_task;
  const Node* node = nullptr;
  ThreadCounters* counters = nullptr;
  std::uint64_t first_sequence = 0;  ///< autograd's sequence number at the first open operator
  bool open = false;
};

Mark* current_mark() {
  return static_cast<Mark*>(c10::ThreadLocalDebugInfo::get(mark_kind));
}

/// Whether the node runs code that torch did not generate.  Remembered by type: the cast is slow.
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

bool may_run_anything(Node* node) {
#if FLOPMETER_TORCH_VERSION >= 200
  return node != nullptr && is_custom(*node);
#else
  return node == nullptr || is_custom(*node);
#endif
}

/// A nested backward runs: what the marked node did since the oldest node of the walked graph was
/// recompute.
void settle_by_nested(Mark& mark, const Node* node) {
  if (!mark.open) return;
  std::uint64_t oldest = node != nullptr ? node->sequence_nr() : UINT64_MAX;
  if (const auto* nodes = torch::autograd::get_current_graph_task_nodes_in_graph()) {
    for (const Node* each : *nodes) oldest = std::min<std::uint64_t>(oldest, each->sequence_nr());
  }
  // Work under no_grad before any node was made leaves no trace: a checkpoint runs nothing but the
  // forward.
  const bool from_the_start = oldest < mark.first_sequence || mark.node == nullptr ||
                              mark.node->name().find("CheckpointFunction") != std::string::npos;
  mark.counters->settle(from_the_start ? PassAttribution::recompute : PassAttribution::backward, PassAttribution::recompute);
  mark.open = false;
}

PassAttribution open_booking(TaskId task, const Node* node, Mark* mark) {
  const std::uint64_t sequence = at::sequence_number::peek();
  ThreadCounters& counters = thread_counters();
  if (mark == nullptr || mark->task != task || mark->node != node || mark->counters != &counters) {
    auto fresh = std::make_shared<Mark>();
    mark = fresh.get();
    mark->task = task;
    mark->node = node;
    mark->counters = &counters;
    c10::ThreadLocalDebugInfo::_push(mark_kind, std::move(fresh));
  }
  if (!mark->open) {
    counters.settle(PassAttribution::backward,
                 PassAttribution::backward);  // of an earlier node that nothing nested in
    mark->open = true;
    mark->first_sequence = sequence;
  }
  return sequence == mark->first_sequence ? PassAttribution::pending_first : PassAttribution::pending;
}

}  // namespace

[[gnu::noinline]] void note_forward_hooks() {
  const Hooks hooks = hooks_now();
  if (!context.in_backward && hooks.depth >= context.outside.depth) return;
  context.in_backward = false;
  context.ran_forward = true;
  context.outside = hooks;
  forward_depth.store(hooks.depth, std::memory_order_relaxed);
  forward_innermost.store(hooks.innermost, std::memory_order_relaxed);
}

[[gnu::noinline]] PassAttribution attribution_in_backward(TaskId task) {
  const auto node = current_node();
  Mark* mark = current_mark();
  if (mark != nullptr && mark->task != task) settle_by_nested(*mark, node.get());
  const Hooks hooks = hooks_now();
  if (thread_local TaskId last = no_task;
      std::exchange(last, task) != task && !context.ran_forward) {
    context.outside = last_forward_hooks();
  }
  context.in_backward = true;
  if (recomputes(hooks)) return PassAttribution::recompute;
  context.outside = hooks;
  if (may_run_anything(node.get())) return open_booking(task, node.get(), mark);
  return PassAttribution::backward;
}

std::uint32_t module_now(PassAttribution attribution) {
  if (module_users.load(std::memory_order_relaxed) == 0) return 0;
  // Recomputed work runs inside its module's forward; backward work belongs to the node's.
  if (attribution == PassAttribution::forward || (attribution != PassAttribution::backward && context.module != 0))
    return context.module;
  const auto node = current_node();
  return node != nullptr ? module_of_node(node->thread_id(), node->sequence_nr()) : context.module;
}

namespace {

#if FLOPMETER_TORCH_VERSION >= 209
Dtype setting(at::Float32Backend backend, Precision precision) {
  constexpr auto ops =
      std::to_array({at::Float32Op::MATMUL, at::Float32Op::CONV, at::Float32Op::RNN});
  switch (at::globalContext().float32Precision(backend, ops[static_cast<std::size_t>(precision)])) {
    case at::Float32Precision::TF32:
      return Dtype::tf32;
    case at::Float32Precision::BF16:
      return Dtype::bf16;
    case at::Float32Precision::DEFAULT:  // "leave it to the library": cuDNN takes TF32 for
                                         // convolutions
      return backend == at::Float32Backend::CUDA && precision != Precision::matmul ? Dtype::tf32
                                                                                   : Dtype::fp32;
    default:
      return Dtype::fp32;
  }
}
#endif

/// The processor multiplies bf16 tiles (AMX).
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

// Where the setting allows bf16, oneDNN takes it on AMX only: with AVX-512 alone, bf16 instructions
// or not, its verbose output shows fp32 kernels.  It takes TF32 on no processor.
const bool cpu_shortens_fp32 = has_bf16_tiles();

Dtype fp32_setting(c10::DeviceType device, Precision precision) {
  if (device == c10::DeviceType::CPU) {
#if FLOPMETER_TORCH_VERSION >= 209
    return setting(at::Float32Backend::MKLDNN, precision) == Dtype::bf16 ? Dtype::bf16
                                                                         : Dtype::fp32;
#elif FLOPMETER_TORCH_VERSION >= 200
    return precision == Precision::matmul && at::globalContext().float32MatmulPrecision() ==
                                                 at::Float32MatmulPrecision::MEDIUM
               ? Dtype::bf16
               : Dtype::fp32;
#else
    return Dtype::fp32;
#endif
  }
  if (device != c10::DeviceType::CUDA) return Dtype::fp32;
#if FLOPMETER_TORCH_VERSION >= 209
  return setting(at::Float32Backend::CUDA, precision);
#else
  const bool tf32 = precision == Precision::matmul ? at::globalContext().allowTF32CuBLAS()
                                                   : at::globalContext().allowTF32CuDNN();
  return tf32 ? Dtype::tf32 : Dtype::fp32;
#endif
}

}  // namespace flopmeter::torch_adapter
