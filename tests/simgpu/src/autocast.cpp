// SPDX-License-Identifier: Apache-2.0
// torch.autocast("simgpu"): the operator lists that torch keeps for every device.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace at::autocast {
namespace {

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define SIMGPU_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(SIMGPU_LOWER)
#undef SIMGPU_LOWER
#define SIMGPU_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(SIMGPU_FP32)
#undef SIMGPU_FP32
#define SIMGPU_SET_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
  AT_FORALL_FP32_SET_OPT_DTYPE(SIMGPU_SET_DTYPE)
#undef SIMGPU_SET_DTYPE
#define SIMGPU_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(SIMGPU_PROMOTE)
#undef SIMGPU_PROMOTE
}

}  // namespace
}  // namespace at::autocast
