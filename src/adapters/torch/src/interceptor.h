// SPDX-License-Identifier: Apache-2.0
//
// A counted call: the operator runs below the interception key, and is counted after it succeeded.
//
// The key is BackendSelect.  It is in every thread's default set, directly above the backends and
// below Python, autograd, autocast, and functorch, so that a call passes it once, with its real
// shapes and dtypes.  Operators without a kernel for the key fall through at no cost.
#pragma once

#include "arguments.h"
#include "context.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <string>
#include <vector>

namespace flopmeter::torch_adapter {

inline constexpr auto interception_key = c10::DispatchKey::BackendSelect;
inline constexpr c10::DispatchKeySet keys_below(c10::DispatchKeySet::FULL_AFTER, interception_key);

/// Real computation comes next: not a shape-only backend, and nothing that dispatches again.
inline bool computes(c10::DispatchKeySet below) {
  const c10::DispatchKey key = below.highestPriorityTypeId();
  const bool dense =
      key > c10::DispatchKey::StartOfDenseBackends && key <= c10::DispatchKey::EndOfDenseBackends;
  return (dense && key != c10::DispatchKey::Meta) || key == c10::DispatchKey::MkldnnCPU;
}

/// The same by two comparisons, for nearly every call: only a dense backend is left.
inline bool plainly_computes(c10::DispatchKeySet below) {
  constexpr auto dense = static_cast<unsigned>(c10::DispatchKey::Dense) - 1;
  constexpr auto meta = static_cast<unsigned>(c10::BackendComponent::MetaBit) - 1;
  const std::uint64_t bits = below.raw_repr();
  return bits >> c10::num_backends == std::uint64_t{1} << dense && (bits >> meta & 1) == 0;
}

/// Whether to count this call; otherwise it runs unchanged.
inline bool is_counted(c10::DispatchKeySet below) {
  return counting_users.load(std::memory_order_relaxed) != 0 && thread_context.depth == 0 &&
         (plainly_computes(below) || computes(below));
}

/// A backend whose work does not follow from shapes (sparse, quantized): the call is counted as
/// unsupported.
inline bool is_unsupported(c10::DispatchKeySet below) {
  if (counting_users.load(std::memory_order_relaxed) == 0 || thread_context.depth != 0)
    return false;
  switch (below.highestPriorityTypeId()) {
    case c10::DispatchKey::SparseCPU:
    case c10::DispatchKey::SparseCUDA:
    case c10::DispatchKey::SparseCsrCPU:
    case c10::DispatchKey::SparseCsrCUDA:
    case c10::DispatchKey::QuantizedCPU:
    case c10::DispatchKey::QuantizedCUDA:
      return true;
    default:
      return false;
  }
}

/// While alive, a counted operator runs: operators that it calls are part of it.
class CountedOpScope {
 public:
  CountedOpScope()
      : during_collective_(__atomic_load_n(host->collectives_under_way, __ATOMIC_RELAXED) != 0) {
    ++thread_context.depth;
    if (during_collective_) [[unlikely]]
      host->operation_began();
  }
  ~CountedOpScope() {
    --thread_context.depth;
    if (during_collective_) [[unlikely]]
      host->operation_ended();
  }
  CountedOpScope(const CountedOpScope&) = delete;
  CountedOpScope& operator=(const CountedOpScope&) = delete;
  CountedOpScope(CountedOpScope&&) = delete;
  CountedOpScope& operator=(CountedOpScope&&) = delete;

 private:
  bool during_collective_;
};

/// Reports a call of an operator without a FLOP cost.
inline void add_unsupported(const FlopmeterOp* op) {
  ++thread_context.calls;
  host->add_unsupported(op);
}

/// Whether an optimizer computes for itself, as Muon and L-BFGS do: not work of the model.  A
/// closure that it calls has gradients or runs backward.
inline bool is_optimizer_work(FlopmeterPass pass) {
  return __atomic_load_n(host->phase, __ATOMIC_RELAXED) == FLOPMETER_PHASE_OPTIMIZER &&
         pass == FLOPMETER_FORWARD && !c10::GradMode::is_enabled();
}

inline bool reads_output(const FlopmeterOp& op) {
  return __atomic_load_n(&op.reads_output, __ATOMIC_RELAXED) != 0;
}

/// Of a list of tensors: the dtype of the first.
inline std::uint8_t element_dtype(const FlopmeterArg& arg) {
  return arg.kind == FLOPMETER_TENSORS && arg.rank > 0 ? arg.items[0].dtype : arg.dtype;
}

/// Counts a call that succeeded, in the pass and module where this thread is unless others are
/// given.  Does not throw.
[[gnu::always_inline]] inline void count_call(const FlopmeterOp& op,
                                              c10::DeviceType device,
                                              const FlopmeterArg* args,
                                              std::size_t arg_count,
                                              const FlopmeterArg& output,
                                              FlopmeterPass given_pass = FLOPMETER_CURRENT_PASS,
                                              std::uint32_t given_module = FLOPMETER_CURRENT_MODULE,
                                              const void* const* tensors = nullptr) {
  FlopmeterCall call;
  call.args = args;
  call.arg_count = arg_count;
  call.tensors = tensors;
  call.output = output;
  std::int32_t dtype = op.compute_dtype;
  if (dtype < 0) {
    dtype = FLOPMETER_OTHER_DTYPE;
    const auto at = static_cast<std::size_t>(op.dtype_argument);
    if (at < arg_count) dtype = element_dtype(args[at]);
  }
  if (dtype == FLOPMETER_FP32)
    dtype = fp32_compute_dtype(device, static_cast<FlopmeterPrecision>(op.precision));
  const FlopmeterPass pass = given_pass == FLOPMETER_CURRENT_PASS ? current_pass() : given_pass;
  call.dtype = static_cast<std::uint8_t>(dtype);
  call.pass = static_cast<std::uint8_t>(pass);
  call.optimizer_work = is_optimizer_work(pass) ? 1 : 0;
  call.module = given_module == FLOPMETER_CURRENT_MODULE ? current_module(pass) : given_module;
  ++thread_context.calls;
  __atomic_load_n(&op.count, __ATOMIC_ACQUIRE)(&op, &call);
}

/// Registers typed wrappers, which cost least, for the operators that a training step calls most.
void register_typed(torch::Library& library);

/// Whether the operator may be wrapped: its backends compute it, and the key is free.
bool can_intercept(const c10::OperatorHandle& handle);
std::string full_name(const c10::OperatorName& name);
void record_interception(const c10::OperatorName& name);
/// The counted operator for a schema; null if there is none.
FlopmeterOp* find_op(const c10::OperatorHandle& handle);
/// Arguments in the order in which the rule of the operator reads them.
std::vector<FlopmeterArg> arranged(const std::vector<std::int32_t>& places,
                                   const std::vector<FlopmeterArg>& args);
std::vector<std::int32_t> places_of(const FlopmeterOp& op, const c10::FunctionSchema& schema);

void install();
void find_new_ops();
void open_op(const char* name, const FlopmeterOp* op);
int begin_call(int is_graph);
void end_call();
int inside_call();
std::uint32_t module_now();
void count_outside(const FlopmeterOp* op,
                   const FlopmeterArg* args,
                   std::size_t arg_count,
                   const void* const* tensors,
                   const FlopmeterArg* output,
                   std::int32_t device,
                   std::uint8_t pass,
                   std::uint32_t module);
std::int32_t describe_tensor(std::uintptr_t tensor, FlopmeterArg* arg);
int intercept(const char* name, FlopmeterOp* op);
void list_intercepted(void* context, void (*add)(void*, const char*));
double run_matmuls(
    std::int64_t rows, std::int64_t inner, std::int64_t columns, std::int32_t calls, int counted);

}  // namespace flopmeter::torch_adapter
