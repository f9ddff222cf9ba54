// SPDX-License-Identifier: Apache-2.0
//
// A counted call: the operator runs below the key we sit on, and is supported and added after it
// succeeded.
//
// The key is BackendSelect.  It is in every thread's default set, directly above the backends and
// below Python, autograd, autocast and functorch, so that a call passes once, with its real shapes
// and dtypes; operators that register nothing there fall through at no cost.
#pragma once

#include "arguments.h"
#include "context.h"
#include "op_table.h"

#include <flopmeter/core/communication.h>
#include <flopmeter/core/current_phase.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <span>

namespace flopmeter::torch_adapter {

inline constexpr auto interception_key = c10::DispatchKey::BackendSelect;
inline constexpr c10::DispatchKeySet keys_below(c10::DispatchKeySet::FULL_AFTER, interception_key);

/// Real computation comes next: not a shape-only backend, and nothing that will dispatch again.
inline bool computes(c10::DispatchKeySet below) {
  const c10::DispatchKey key = below.highestPriorityTypeId();
  const bool dense =
      key > c10::DispatchKey::StartOfDenseBackends && key <= c10::DispatchKey::EndOfDenseBackends;
  return (dense && key != c10::DispatchKey::Meta) || key == c10::DispatchKey::MkldnnCPU;
}

/// The same, by two comparisons, for what nearly every call is: nothing but a dense backend.
inline bool plainly_computes(c10::DispatchKeySet below) {
  constexpr auto dense = static_cast<unsigned>(c10::DispatchKey::Dense) - 1;
  constexpr auto meta = static_cast<unsigned>(c10::BackendComponent::MetaBit) - 1;
  const std::uint64_t bits = below.raw_repr();
  return bits >> c10::num_backends == std::uint64_t{1} << dense && (bits >> meta & 1) == 0;
}

/// Counts this call; false where it is to run as it would without us.
inline bool counts_here(c10::DispatchKeySet below) {
  return counting_users.load(std::memory_order_relaxed) != 0 && context.depth == 0 &&
         (plainly_computes(below) || computes(below));
}

/// A backend whose work no shape tells (sparse, quantized): the call is counted as unsupported.
inline bool hides_work(c10::DispatchKeySet below) {
  if (counting_users.load(std::memory_order_relaxed) == 0 || context.depth != 0) return false;
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

/// While alive, operators inside are part of the one that is being counted.
struct Inside {
  Inside() : beside_collective_(collectives_under_way.load(std::memory_order_relaxed) != 0) {
    ++context.depth;
    if (beside_collective_) [[unlikely]]
      operation_began();
  }
  ~Inside() {
    --context.depth;
    if (beside_collective_) [[unlikely]]
      operation_ended();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  Inside(Inside&&) = delete;
  Inside& operator=(Inside&&) = delete;

 private:
  bool beside_collective_;
};

/// Books what comes beside the two sums that every call has: module, pending work, attention.
[[gnu::noinline, gnu::cold]] void add_beside(const OpEntry& entry,
                                             Dtype dtype,
                                             PassAttribution attribution,
                                             const Work& work);

/// Whether an optimizer computes for itself, as Muon and L-BFGS do: no work of the model.  A
/// closure that it calls has gradients or runs backward.
inline bool is_optimizers(PassAttribution attribution) {
  return current_phase().load(std::memory_order_relaxed) == Phase::optimizer &&
         attribution == PassAttribution::forward && !c10::GradMode::is_enabled();
}

/// Books what a call cost.  `factor` is the argument whose dtype the work has.
inline void add_cost(const OpEntry& entry,
                     c10::DeviceType device,
                     const Arg& factor,
                     const OpCost& cost) {
  const auto executed = static_cast<std::uint64_t>(cost.executed.value);
  AttentionPairs pairs = cost.pairs;
  // A product of activations that has an inner extent to sum over may be eager attention, mask
  // unseen.
  if (pairs == AttentionPairs::none && entry.hides_attention && factor.is_tensor() &&
      factor.rank > 0 && factor[-1] > 1) {
    pairs = AttentionPairs::full;
  }
  Dtype dtype = factor.dtype;
  if (dtype == Dtype::fp32) dtype = fp32_compute_dtype(device, entry.precision);
  const PassAttribution attribution = booking_now();
  const std::uint64_t model =
      is_optimizers(attribution) ? 0 : static_cast<std::uint64_t>(cost.model.value);
  if (attribution >= PassAttribution::pending_first || pairs != AttentionPairs::none ||
      module_users.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    add_beside(entry, dtype, attribution, {.executed = executed, .model = model, .pairs = pairs});
  }
  thread_counters().add(entry.index, dtype, attribution, executed, model);
}

/// Costs and books a call that succeeded.  Never throws: what has no flop_cost is counted as such.
void add_call(const OpEntry& entry, c10::DeviceType device, const OpCall& call) noexcept;
void add_unsupported(const OpEntry& entry) noexcept;

/// Registers typed wrappers, which cost least, for the operators that a training step calls most.
void register_typed(torch::Library& library);
/// Registers the catalog's remaining operators, and later a user's, by name.
void register_boxed(const c10::OperatorHandle& op, OpEntry& entry);

/// Whether the operator may be wrapped: computed by its backends, and nobody else sits on our key.
bool can_intercept(const c10::OperatorHandle& op);
std::string full_name(const c10::OperatorName& name);
void note_interception(const c10::OperatorName& name);
bool is_intercepted(const c10::OperatorName& name);

}  // namespace flopmeter::torch_adapter
