// SPDX-License-Identifier: Apache-2.0
//
// Wrappers whose C++ signature comes from the operator's own schema type, so that one source serves
// every torch version: an operator that this version lacks is left out.  This is a list of what is
// hot, not of what is supported.
#include "interceptor.h"

#include <flopmeter/catalog/matmul_cost.h>

#include <ATen/ops/_addmm_activation_ops.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/addmv_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/convolution_backward_ops.h>
#include <ATen/ops/convolution_ops.h>
#include <ATen/ops/dot_ops.h>
#include <ATen/ops/mm_ops.h>
#if __has_include(<ATen/ops/_scaled_mm_ops.h>)
#include <ATen/ops/_scaled_mm_ops.h>
#define FLOPMETER_HAS_SCALED_MM
#endif
#if __has_include(<ATen/ops/_grouped_mm_ops.h>)
#include <ATen/ops/_grouped_mm_ops.h>
#define FLOPMETER_HAS_GROUPED_MM
#endif
#if __has_include(<ATen/ops/_scaled_dot_product_flash_attention_for_cpu_ops.h>)
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_ops.h>
#define FLOPMETER_HAS_CPU_FLASH
#endif
#if __has_include(<ATen/ops/_scaled_dot_product_cudnn_attention_backward_ops.h>)
#include <ATen/ops/_scaled_dot_product_cudnn_attention_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention_ops.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention_ops.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_ops.h>
#define FLOPMETER_HAS_GPU_ATTENTION
#endif

namespace flopmeter::torch_adapter {
namespace {

/// How an operator is supported: by its rule, or by the same rule where the compiler can see it.
struct ByRule {};
template <std::optional<OpCost> (*flop_cost)(const OpCall&), std::size_t factor>
struct Inlined {};

template <class Op, class CostRule, class Signature = typename Op::schema>
struct Wrapper;

template <class Op, class CostRule, class Return, class... Args>
struct Wrapper<Op, CostRule, Return(Args...)> {
  static inline OpEntry* entry = nullptr;
  /// Found when the operator was wrapped: redispatching need not look for it.
  static inline std::optional<c10::TypedOperatorHandle<Return(Args...)>> op;

  [[gnu::flatten]] static Return call(c10::DispatchKeySet keys, Args... args) {
    const c10::DispatchKeySet below = keys & keys_below;
    if (!counts_here(below)) [[unlikely]]
      return uncounted(below, std::forward<Args>(args)...);
    const Inside inside;
    // Arguments are references and views: redispatching leaves them as they were.
    decltype(auto) result = op->redispatch(below, std::forward<Args>(args)...);
    add(below, result, args...);
    return result;
  }

  [[gnu::noinline]] static Return uncounted(c10::DispatchKeySet below, Args... args) {
    if (!hides_work(below)) return op->redispatch(below, std::forward<Args>(args)...);
    const Inside inside;
    decltype(auto) result = op->redispatch(below, std::forward<Args>(args)...);
    add_unsupported(*entry);
    return result;
  }

  template <class Result>
  [[gnu::always_inline]] static void add(c10::DispatchKeySet below,
                                          const Result& result,
                                          const Args&... args) noexcept try {
    const auto device = below.has_backend(c10::BackendComponent::CPUBit) ? c10::DeviceType::CPU
                                                                         : device_of(args...);
    add_as(CostRule{}, device, result, args...);
  } catch (...) {
    add_unsupported(*entry);  // a tensor without plain sizes
  }

  template <class Result>
  [[gnu::noinline]] static void add_as(ByRule /*cost_model*/,
                                        c10::DeviceType device,
                                        const Result& result,
                                        const Args&... args) {
    Scratch scratch;
    const std::array<Arg, sizeof...(Args)> list = {factor<Args>(args, scratch)...};
    add_call(*entry, device, {.args = list, .output = output_arg(result, scratch)});
  }

  template <class Result, std::optional<OpCost> (*flop_cost)(const OpCall&), std::size_t at>
  [[gnu::always_inline]] static void add_as(Inlined<flop_cost, at> /*cost_model*/,
                                             c10::DeviceType device,
                                             const Result& result,
                                             const Args&... args) {
    const bool user_rule = entry->user.load(std::memory_order_acquire) != nullptr;
    if (user_rule || (... || lacks_tensor(args))) [[unlikely]]
      return add_as(ByRule{}, device, result, args...);
    Scratch scratch;
    const std::array<Arg, sizeof...(Args)> list = {factor<Args>(args, scratch)...};
    const std::optional<OpCost> cost = flop_cost({.args = list, .output = {}});
    if (!cost) [[unlikely]]
      return add_unsupported(*entry);
    add_cost(*entry, device, list[at], *cost);
  }

  /// An operator that writes to its argument returns it: the rule finds it as the output.
  template <class As>
  [[gnu::always_inline]] static Arg factor(const std::remove_cvref_t<As>& arg, Scratch& scratch) {
    if constexpr (std::is_same_v<As, at::Tensor&>) return {};
    return to_arg(arg, scratch);
  }

  /// Asked of all arguments first: past it the compiler knows that each tensor has extents.
  static bool lacks_tensor(const at::Tensor& arg) { return !arg.defined(); }
  static bool lacks_tensor(const auto& /*arg*/) { return false; }

  static c10::DeviceType device_of(const at::Tensor& first, const auto&... /*rest*/) {
    return first.device().type();
  }
};

template <class CostRule, class Op>
void wrap(torch::Library& library) {
  const c10::OperatorName name(static_cast<const char*>(Op::name),
                               static_cast<const char*>(Op::overload_name));
  const auto op = c10::Dispatcher::singleton().findSchema(name);
  const std::string full = full_name(name);
  OpEntry* entry = find_or_add_op(full);
  if (!op || entry == nullptr || entry->rule == nullptr || !can_intercept(*op)) return;
  Wrapper<Op, CostRule>::entry = entry;
  Wrapper<Op, CostRule>::op = op->typed<typename Op::schema>();
  library.impl(full.c_str(), torch::CppFunction(TORCH_FN((Wrapper<Op, CostRule>::call))));
  note_interception(name);
}

template <class CostRule, class... Ops>
void wrap_as(torch::Library& library) {
  (wrap<CostRule, Ops>(library), ...);
}
template <class... Ops>
void wrap_all(torch::Library& library) {
  wrap_as<ByRule, Ops...>(library);
}

}  // namespace

void register_typed(torch::Library& library) {
  using namespace at::_ops;
  wrap_as<Inlined<matmul_cost<0>, 0>, mm, mm_out>(library);
  wrap_as<Inlined<matmul_cost<1>, 1>, addmm, addmm_, addmm_out>(library);
  wrap_as<Inlined<matmul_cost<0, 3>, 0>, bmm, bmm_out>(library);
  wrap_as<Inlined<matmul_cost<1, 3>, 1>, baddbmm, baddbmm_, baddbmm_out>(library);
  wrap_all<addmv, addmv_, addmv_out, dot, _addmm_activation, convolution, convolution_backward>(
      library);
#if FLOPMETER_TORCH_VERSION >= 208
  wrap_all<mm_dtype,
           mm_dtype_out,
           bmm_dtype,
           bmm_dtype_out,
           addmm_dtype,
           addmm_dtype_out,
           baddbmm_dtype,
           baddbmm_dtype_out>(library);
#endif
#ifdef FLOPMETER_HAS_SCALED_MM
  wrap_all<_scaled_mm, _scaled_mm_out>(library);
#endif
#ifdef FLOPMETER_HAS_GROUPED_MM
  wrap_all<_grouped_mm>(library);
#endif
#ifdef FLOPMETER_HAS_CPU_FLASH
  wrap_all<_scaled_dot_product_flash_attention_for_cpu,
           _scaled_dot_product_flash_attention_for_cpu_backward>(library);
#endif
#ifdef FLOPMETER_HAS_GPU_ATTENTION
  wrap_all<_scaled_dot_product_flash_attention,
           _scaled_dot_product_flash_attention_backward,
           _scaled_dot_product_efficient_attention,
           _scaled_dot_product_efficient_attention_backward,
           _scaled_dot_product_cudnn_attention,
           _scaled_dot_product_cudnn_attention_backward>(library);
#endif
}

}  // namespace flopmeter::torch_adapter
