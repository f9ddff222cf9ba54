// SPDX-License-Identifier: Apache-2.0
//
// Wrappers whose C++ signature comes from the operator's own schema type, so that one source fits
// every torch version; operators that a version lacks are skipped.  The list holds the operators
// that training calls often; all others that the catalog supports get a boxed wrapper.
#include "interceptor.h"

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

template <class Op, class Signature = typename Op::schema>
struct Wrapper;

template <class Op, class Return, class... Args>
struct Wrapper<Op, Return(Args...)> {
  static inline FlopmeterOp* op = nullptr;
  /// Found when the operator was wrapped: redispatching need not look it up.
  static inline std::optional<c10::TypedOperatorHandle<Return(Args...)>> handle;

  [[gnu::flatten]] static Return call(c10::DispatchKeySet keys, Args... args) {
    const c10::DispatchKeySet below = keys & keys_below;
    if (!is_counted(below)) [[unlikely]]
      return uncounted(below, std::forward<Args>(args)...);
    const CountedOpScope scope;
    // Arguments are references and views: redispatching does not change them.
    decltype(auto) result = handle->redispatch(below, std::forward<Args>(args)...);
    count(below, result, args...);
    return result;
  }

  [[gnu::noinline]] static Return uncounted(c10::DispatchKeySet below, Args... args) {
    if (!is_unsupported(below)) return handle->redispatch(below, std::forward<Args>(args)...);
    const CountedOpScope scope;
    decltype(auto) result = handle->redispatch(below, std::forward<Args>(args)...);
    add_unsupported(op);
    return result;
  }

  template <class Result>
  [[gnu::always_inline]] static void count(c10::DispatchKeySet below,
                                           const Result& result,
                                           const Args&... args) noexcept try {
    const auto device = below.has_backend(c10::BackendComponent::CPUBit) ? c10::DeviceType::CPU
                                                                         : device_of(args...);
    Scratch scratch;
    const std::array<FlopmeterArg, sizeof...(Args)> list = {input_arg<Args>(args, scratch)...};
    FlopmeterArg output = no_arg();
    if (reads_output(*op)) output = output_arg(result, scratch);
    count_call(*op, device, list.data(), list.size(), output);
  } catch (...) {  // a tensor without plain sizes
    add_unsupported(op);
  }

  /// An operator that writes to its argument returns it: the rule finds it as the output.
  template <class As>
  [[gnu::always_inline]] static FlopmeterArg input_arg(const std::remove_cvref_t<As>& arg,
                                                       Scratch& scratch) {
    if constexpr (std::is_same_v<As, at::Tensor&>) return no_arg();
    return to_arg(arg, scratch);
  }

  static c10::DeviceType device_of(const at::Tensor& first, const auto&... /*rest*/) {
    return first.device().type();
  }
};

template <class Op>
void wrap(torch::Library& library) {
  const c10::OperatorName name(static_cast<const char*>(Op::name),
                               static_cast<const char*>(Op::overload_name));
  const std::string full = full_name(name);
  const auto found = c10::Dispatcher::singleton().findSchema(name);
  if (!found) return;
  FlopmeterOp* op = find_op(*found);
  if (op == nullptr || !can_intercept(*found)) return;
  Wrapper<Op>::op = op;
  Wrapper<Op>::handle = found->typed<typename Op::schema>();
  library.impl(full.c_str(), torch::CppFunction(TORCH_FN((Wrapper<Op>::call))));
  record_interception(name);
}

template <class... Ops>
void wrap_all(torch::Library& library) {
  (wrap<Ops>(library), ...);
}

}  // namespace

void register_typed(torch::Library& library) {
  using namespace at::_ops;
  wrap_all<mm, mm_out, addmm, addmm_, addmm_out, bmm, bmm_out, baddbmm, baddbmm_, baddbmm_out>(
      library);
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
