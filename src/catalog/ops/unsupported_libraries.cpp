// SPDX-License-Identifier: Apache-2.0
//
// Operators of other libraries that multiply and have no cost rule yet: torchao, bitsandbytes,
// quack, Primus-Turbo, unsloth, and the grouped GEMMs of cuDNN's Python package.  They are reported
// as unsupported, so that no figure silently misses their work.
#include <flopmeter/catalog/op_rule.h>

#include <array>

namespace flopmeter {
namespace {

constexpr std::array rules = {
    OpRule{.name = "torchao::blockwise_scaled_mm", .flop_cost = unknown_cost},
    OpRule{.name = "torchao::mx_fp8_bf16", .flop_cost = unknown_cost},
    OpRule{.name = "torchao::mx_fp4_bf16", .flop_cost = unknown_cost},
    OpRule{.name = "torchao::scaled_int8_mm", .flop_cost = unknown_cost},
    OpRule{.name = "ao::blockwise_fp8_gemm", .flop_cost = unknown_cost},
    OpRule{.name = "float8_sparse::fp8_sparse_mm", .flop_cost = unknown_cost},
    OpRule{.name = "bitsandbytes::gemm_4bit", .flop_cost = unknown_cost},
    OpRule{.name = "bitsandbytes::gemv_4bit", .flop_cost = unknown_cost},
    OpRule{.name = "bitsandbytes::int8_linear_matmul", .flop_cost = unknown_cost},
    OpRule{.name = "bitsandbytes::int8_scaled_mm", .flop_cost = unknown_cost},
    OpRule{.name = "bitsandbytes::int8_mixed_scaled_mm", .flop_cost = unknown_cost},
    OpRule{.name = "quack::gemm", .flop_cost = unknown_cost},
    OpRule{.name = "quack::gemm_out", .flop_cost = unknown_cost},
    OpRule{.name = "quack::gemm_add", .flop_cost = unknown_cost},
    OpRule{.name = "quack::gemm_act", .flop_cost = unknown_cost},
    OpRule{.name = "quack::gemm_dact", .flop_cost = unknown_cost},
    OpRule{.name = "quack::gemm_symmetric", .flop_cost = unknown_cost},
    OpRule{.name = "primus_turbo_cpp_extension::hipblaslt_gemm", .flop_cost = unknown_cost},
    OpRule{.name = "primus_turbo_cpp_extension::hipblaslt_gemm_fp8", .flop_cost = unknown_cost},
    OpRule{.name = "primus_turbo_cpp_extension::ck_gemm_fp8", .flop_cost = unknown_cost},
    OpRule{.name = "primus_turbo_cpp_extension::turbo_gemm_fp8", .flop_cost = unknown_cost},
    OpRule{.name = "primus_turbo_cpp_extension::ck_grouped_gemm", .flop_cost = unknown_cost},
    OpRule{.name = "primus_turbo_cpp_extension::ck_grouped_gemm_fp8", .flop_cost = unknown_cost},
    OpRule{.name = "primus_turbo_cpp_extension::ck_grouped_gemm_variable_k",
           .flop_cost = unknown_cost},
    OpRule{.name = "primus_turbo_cpp_extension::hipblaslt_grouped_gemm", .flop_cost = unknown_cost},
    OpRule{.name = "unsloth.kernels.moe.grouped_gemm.interface::grouped_gemm_forward",
           .flop_cost = unknown_cost,
           .python = true},
    OpRule{.name = "unsloth.kernels.moe.grouped_gemm.interface::grouped_gemm_dX",
           .flop_cost = unknown_cost,
           .python = true},
    OpRule{.name = "unsloth.kernels.moe.grouped_gemm.interface::grouped_gemm_dW",
           .flop_cost = unknown_cost,
           .python = true},
    OpRule{
        .name = "cudnn::grouped_gemm_glu_wrapper_sm100", .flop_cost = unknown_cost, .python = true},
    OpRule{.name = "cudnn::grouped_gemm_dglu_wrapper_sm100",
           .flop_cost = unknown_cost,
           .python = true},
    OpRule{.name = "cudnn::grouped_gemm_srelu_wrapper_sm100",
           .flop_cost = unknown_cost,
           .python = true},
    OpRule{.name = "cudnn::grouped_gemm_dsrelu_wrapper_sm100",
           .flop_cost = unknown_cost,
           .python = true},
    OpRule{.name = "cudnn::grouped_gemm_quant_wrapper_sm100",
           .flop_cost = unknown_cost,
           .python = true},
    OpRule{.name = "cudnn::grouped_gemm_wgrad_wrapper_sm100",
           .flop_cost = unknown_cost,
           .python = true},
};

}  // namespace

extern constinit const OpFamily op_unsupported_libraries{
    .name = "unsupported_libraries",
    .help = "matmuls of other libraries without a cost rule: reported as unsupported",
    .source = "operators that the libraries define",
    .rules = rules,
    .examples = {}};

}  // namespace flopmeter
