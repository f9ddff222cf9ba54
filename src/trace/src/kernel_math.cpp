// SPDX-License-Identifier: Apache-2.0
#include "kernel_math.h"

#include <array>

namespace flopmeter {
namespace {

struct Mark {
  std::string_view text;
  Dtype dtype;
};

// The first mark in the name decides.  Names of cuBLAS, cuDNN, and CUTLASS kernels: "sgemm" and
// "ffma" run on the vector units, "s1688" and "s16816" on tensor cores with fp32 inputs, "h884" and
// the like on tensor cores with 16-bit inputs.  Other kernels have the type of their elements as
// the first template argument.
constexpr auto marks =
    std::to_array<Mark>({{"e4m3", Dtype::fp8},    {"e5m2", Dtype::fp8},    {"fp8", Dtype::fp8},
                         {"qmma", Dtype::fp8},    {"bf16", Dtype::bf16},   {"BBS", Dtype::bf16},
                         {"tf32", Dtype::tf32},   {"h884", Dtype::fp16},   {"s884", Dtype::fp16},
                         {"h1688", Dtype::fp16},  {"h16816", Dtype::fp16}, {"s161616", Dtype::fp16},
                         {"hmma", Dtype::fp16},   {"_f16", Dtype::fp16},   {"fp16", Dtype::fp16},
                         {"HHS", Dtype::fp16},    {"s1688", Dtype::tf32},  {"s16816", Dtype::tf32},
                         {"sgemm", Dtype::fp32},  {"simt", Dtype::fp32},   {"ffma", Dtype::fp32},
                         {"scudnn", Dtype::fp32}, {"dgemm", Dtype::fp64},  {"<__half", Dtype::fp16},
                         {"<float", Dtype::fp32}, {"<double", Dtype::fp64}});

}  // namespace

std::optional<Dtype> math_of_kernel(std::string_view name) {
  for (const Mark& mark : marks) {
    if (name.find(mark.text) != std::string_view::npos) return mark.dtype;
  }
  return std::nullopt;
}

}  // namespace flopmeter
