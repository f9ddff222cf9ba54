// SPDX-License-Identifier: Apache-2.0
//
// Everything that differs between the supported torch versions (1.13, and 2.1 to 2.15).  The rest
// of the adapter sees one torch.
#pragma once

#include <flopmeter/adapter_abi.h>

#include <ATen/Context.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/version.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#define FLOPMETER_TORCH_VERSION (TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR)

namespace flopmeter::torch_adapter {

/// The type of optional arguments in operator signatures.
#if FLOPMETER_TORCH_VERSION >= 205
template <class T>
using Optional = std::optional<T>;
#else
template <class T>
using Optional = c10::optional<T>;
#endif

/// Calls `set(type, dtype)` for the element types that not every version has.
template <class Set>
constexpr void for_each_new_scalar_type(Set set) {
  static_cast<void>(set);
#if FLOPMETER_TORCH_VERSION >= 201
  set(c10::ScalarType::Float8_e4m3fn, FLOPMETER_FP8);
  set(c10::ScalarType::Float8_e5m2, FLOPMETER_FP8);
#endif
#if FLOPMETER_TORCH_VERSION >= 202
  set(c10::ScalarType::Float8_e4m3fnuz, FLOPMETER_FP8);
  set(c10::ScalarType::Float8_e5m2fnuz, FLOPMETER_FP8);
#endif
#if __has_include( \
    <c10/util/Float4_e2m1fn_x2.h>) || __has_include(<torch/headeronly/util/Float4_e2m1fn_x2.h>)
  set(c10::ScalarType::Float4_e2m1fn_x2, FLOPMETER_FP4);
#endif
}

/// The kind under which the adapter keeps its entry in the thread-local debug information.
#if FLOPMETER_TORCH_VERSION >= 213
inline constexpr std::string_view debug_info_name = "flopmeter";
inline const c10::DebugInfoKind debug_info_kind(&debug_info_name);
#else  // an enumeration, whose values end far below this one
inline constexpr auto debug_info_kind = static_cast<c10::DebugInfoKind>(0x66);
#endif

/// Identifies a running backward.
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

/// The autograd node that runs in this thread, or null.  1.13 does not know.
inline auto current_node() {
#if FLOPMETER_TORCH_VERSION >= 200
  return torch::autograd::get_current_node();
#else
  return std::shared_ptr<torch::autograd::Node>();
#endif
}
inline constexpr bool knows_current_node = FLOPMETER_TORCH_VERSION >= 200;

/// The saved-tensor hooks in force.  Hooks are identified by their unpack function, which lives as
/// long as the tensors that it unpacks.
struct SavedTensorHooks {
  int depth = 0;  ///< in 1.13 at most 1
  const void* outermost = nullptr;
  const void* innermost = nullptr;
};

inline SavedTensorHooks current_hooks() {
#if FLOPMETER_TORCH_VERSION >= 200
  using Stack = decltype(at::impl::SavedTensorDefaultHooksTLS::stack);
  struct Opened : Stack {
    using Stack::c;
  };
  const Stack& stack = at::SavedTensorDefaultHooks::get_tls_state().stack;
  if (stack.empty()) [[likely]]
    return {};
  const auto unpack = [](const auto& hooks) -> const void* {
#if FLOPMETER_TORCH_VERSION >= 205
    return hooks.second.ptr(&hooks.second.pyinterpreter());
#else
    return hooks.second;
#endif
  };
  return {.depth = static_cast<int>(stack.size()),
          .outermost = unpack((stack.*&Opened::c).front()),
          .innermost = unpack(stack.top())};
#else
  const void* unpack = at::SavedTensorDefaultHooks::get_hooks().second;
  return {.depth = unpack != nullptr ? 1 : 0, .outermost = unpack, .innermost = unpack};
#endif
}

/// Calls `done` when the future completes.
template <class Done>
void on_completion(c10::ivalue::Future& future, Done done) {
#if FLOPMETER_TORCH_VERSION >= 202
  future.addCallback([done](c10::ivalue::Future&) { done(); }, /*uses_future=*/false);
#else
  future.addCallback([done](c10::ivalue::Future&) { done(); });
#endif
}

enum class Fp32Backend { cpu, cuda };

/// The dtype in which the user's settings let `backend` run fp32 work.
inline FlopmeterDtype fp32_setting(Fp32Backend backend, FlopmeterPrecision precision) {
  auto& settings = at::globalContext();
#if FLOPMETER_TORCH_VERSION >= 210
  constexpr auto ops =
      std::to_array({at::Float32Op::MATMUL, at::Float32Op::CONV, at::Float32Op::RNN});
  const auto library =
      backend == Fp32Backend::cpu ? at::Float32Backend::MKLDNN : at::Float32Backend::CUDA;
  switch (settings.float32Precision(library, ops[precision])) {
    case at::Float32Precision::TF32:
      return FLOPMETER_TF32;
    case at::Float32Precision::BF16:
      return FLOPMETER_BF16;
#if FLOPMETER_TORCH_VERSION >= 213
    case at::Float32Precision::DEFAULT:  // the library decides: cuDNN takes TF32
      return backend == Fp32Backend::cuda && precision != FLOPMETER_MATMUL_PRECISION
                 ? FLOPMETER_TF32
                 : FLOPMETER_FP32;
#endif
    default:
      return FLOPMETER_FP32;
  }
#elif FLOPMETER_TORCH_VERSION == 209  // the same by name
  constexpr auto ops = std::to_array<const char*>({"matmul", "conv", "rnn"});
  const std::string set =
      settings.float32Precision(backend == Fp32Backend::cpu ? "mkldnn" : "cuda", ops[precision]);
  return set == "tf32" ? FLOPMETER_TF32 : set == "bf16" ? FLOPMETER_BF16 : FLOPMETER_FP32;
#else
  if (backend == Fp32Backend::cuda) {
    const bool tf32 = precision == FLOPMETER_MATMUL_PRECISION ? settings.allowTF32CuBLAS()
                                                              : settings.allowTF32CuDNN();
    return tf32 ? FLOPMETER_TF32 : FLOPMETER_FP32;
  }
#if FLOPMETER_TORCH_VERSION >= 200
  if (precision == FLOPMETER_MATMUL_PRECISION &&
      settings.float32MatmulPrecision() == at::Float32MatmulPrecision::MEDIUM)
    return FLOPMETER_BF16;
#endif
  return FLOPMETER_FP32;
#endif
}

}  // namespace flopmeter::torch_adapter
