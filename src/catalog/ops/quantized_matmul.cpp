// SPDX-License-Identifier: Apache-2.0
//
// Products with scaled or packed factors: fp8 and fp4 with scales, integers, and weights of few
// bits that are unpacked on the way.  The compute dtype is that of the activations, int8 if the
// operator quantizes them itself.
#include "matmul_cost.h"

#include <array>

namespace flopmeter {
namespace {

constexpr Bytes bytes(const Matmul& op, int input_bits, int weight_bits, int output_bits) {
  return {(op.m * op.k * input_bits + op.k * op.n * weight_bits + op.m * op.n * output_bits) / 8};
}

/// The results have their own dtype, or that of the activations if it is unknown.
std::optional<OpCost> cost(const OpCall& call, std::optional<Matmul> op, int weight_bits) {
  if (!op) return std::nullopt;
  const Arg a = call.arg(0);
  const int output_bits = call.output.is_tensor() ? call.output.bits() : a.bits();
  return OpCost{.executed = flops(*op),
                .model = flops(*op),
                .bytes = bytes(*op, a.bits(), weight_bits, output_bits)};
}

/// [m, k] x [k, n].  fp4 holds two elements in one along k.
std::optional<OpCost> scaled(const OpCall& call) {
  const Arg a = call.arg(0);
  const Arg b = call.arg(1);
  if (!a.is_tensor(2) || !b.is_tensor(2)) return std::nullopt;
  const WideInt packing = a.dtype == Dtype::fp4 ? 2 : 1;
  return cost(call, Matmul{.m = a[0], .n = b[1], .k = packing * a[1]}, b.bits());
}

/// The outputs are the first extent of a weight [n, k].
std::optional<OpCost> int8_weight(const OpCall& call) {
  const Arg weight = call.arg(1);
  return weight.is_tensor(2) ? cost(call, rows_times(call.arg(0), weight[0]), 8) : std::nullopt;
}

/// The weight's layout differs from device to device; its scales are [k / group, n] or [k / group,
/// n, 2].
std::optional<OpCost> int4_weight(const OpCall& call) {
  const Arg scales = call.arg(3);
  return scales.is_tensor() && scales.rank >= 2 ? cost(call, rows_times(call.arg(0), scales[1]), 4)
                                                : std::nullopt;
}

/// input, packed weight, block size, inputs, outputs.
std::optional<OpCost> int4_blocks(const OpCall& call) {
  const Arg outputs = call.arg(4);
  return outputs.is_number() ? cost(call, rows_times(call.arg(0), outputs.integer), 4)
                             : std::nullopt;
}

/// input, weight, scale [n].
std::optional<OpCost> mixed(const OpCall& call) {
  const Arg scale = call.arg(2);
  return scale.is_tensor(1) ? cost(call, rows_times(call.arg(0), scale[0]), 8) : std::nullopt;
}

/// A weight in an opaque format: its size follows from the outputs.
template <int weight_bits>
std::optional<OpCost> prepacked(const OpCall& call) {
  if (!call.output.is_tensor() || call.output.rank == 0) return std::nullopt;
  return cost(call, rows_times(call.arg(0), call.output[-1]), weight_bits);
}

constexpr std::array rules = {
    OpRule{.name = "aten::_int_mm", .flop_cost = scaled},
    OpRule{.name = "aten::_scaled_mm", .flop_cost = scaled},
    OpRule{.name = "aten::_scaled_mm_v2", .flop_cost = scaled},
    OpRule{.name = "aten::_weight_int8pack_mm", .flop_cost = int8_weight},
    OpRule{.name = "aten::_weight_int4pack_mm", .flop_cost = int4_weight},
    OpRule{.name = "aten::_weight_int4pack_mm_for_cpu", .flop_cost = int4_weight},
    OpRule{.name = "aten::_weight_int4pack_mm_with_scales_and_zeros", .flop_cost = int4_weight},
    OpRule{.name = "quantized::int4mm_packed_weight_cpu", .flop_cost = int4_weight},
    OpRule{.name = "aten::_dyn_quant_matmul_4bit",
           .flop_cost = int4_blocks,
           .compute_dtype = Dtype::int8},
    OpRule{.name = "aten::_mixed_dtypes_linear", .flop_cost = mixed},
    OpRule{.name = "quantized::linear", .flop_cost = prepacked<8>},
    OpRule{.name = "quantized::linear_relu", .flop_cost = prepacked<8>},
    OpRule{.name = "quantized::linear_leaky_relu", .flop_cost = prepacked<8>},
    OpRule{.name = "quantized::linear_tanh", .flop_cost = prepacked<8>},
    OpRule{.name = "quantized::linear_dynamic",
           .flop_cost = prepacked<8>,
           .compute_dtype = Dtype::int8},
    OpRule{.name = "quantized::linear_relu_dynamic",
           .flop_cost = prepacked<8>,
           .compute_dtype = Dtype::int8},
    OpRule{.name = "quantized::linear_dynamic_fp16", .flop_cost = prepacked<16>},
    OpRule{.name = "quantized::linear_relu_dynamic_fp16", .flop_cost = prepacked<16>},
    OpRule{.name = "onednn::qlinear_pointwise", .flop_cost = prepacked<8>},
    OpRule{.name = "onednn::linear_dynamic_fp16", .flop_cost = prepacked<16>},
    OpRule{.name = "onednn::linear_relu_dynamic_fp16", .flop_cost = prepacked<16>},
};

// Two rows of 32, eight outputs: 2 * 2 * 32 * 8 = 1024 FLOPs.
// Elements: 64 of input, 256 of weight, 16 of output.
constexpr OpExample worked(std::string_view op, std::string_view call, WideInt bytes) {
  return op_example(op, call, 1024, bytes);
}

constexpr std::array examples = {
    worked("aten::_int_mm", "int8[2,32] int8[32,8] -> int32[2,8]", 384),
    worked("aten::_scaled_mm", "fp8[2,32] fp8[32,8] [1] [1] - - - 0 -> bf16[2,8]", 352),
    // fp4: 16 pairs are 32 elements, half a byte each
    worked("aten::_scaled_mm", "fp4[2,16] fp4[16,8] [1] [1] - - - 0 -> bf16[2,8]", 192),
    worked("aten::_scaled_mm_v2",
           "fp8[2,32] fp8[32,8] {[1]} (0) (0) {[1]} (0) (0) - - -> bf16[2,8]",
           352),
    worked("aten::_weight_int8pack_mm", "bf16[2,32] int8[8,32] bf16[8] -> bf16[2,8]", 416),
    worked("aten::_weight_int4pack_mm", "bf16[2,32] int32[1,1,32,1] 32 bf16[1,8,2]", 288),
    worked("aten::_weight_int4pack_mm_for_cpu", "bf16[2,32] int8[8,16] 32 bf16[1,8,2]", 288),
    worked("aten::_weight_int4pack_mm_with_scales_and_zeros",
           "bf16[2,32] int32[8,4] 32 bf16[1,8] int8[1,8]",
           288),
    worked(
        "quantized::int4mm_packed_weight_cpu", "bf16[2,32] int8[8,16] int32[1] bf16[1,8,2]", 288),
    worked("aten::_dyn_quant_matmul_4bit", "[2,32] int8[999] 32 32 8", 448),
    worked("aten::_mixed_dtypes_linear", "bf16[2,32] int8[32,8] bf16[8]", 416),
    worked("quantized::linear", "int8[2,32] - - 0 -> int8[2,8]", 336),
    worked("quantized::linear_relu", "int8[2,32] - - 0 -> int8[2,8]", 336),
    worked("quantized::linear_leaky_relu", "int8[2,32] - - 0 - -> int8[2,8]", 336),
    worked("quantized::linear_tanh", "int8[2,32] - - 0 -> int8[2,8]", 336),
    worked("quantized::linear_dynamic", "[2,32] - 0 -> [2,8]", 576),
    worked("quantized::linear_relu_dynamic", "[2,32] - 0 -> [2,8]", 576),
    worked("quantized::linear_dynamic_fp16", "[2,32] - -> [2,8]", 832),
    worked("quantized::linear_relu_dynamic_fp16", "[2,32] - -> [2,8]", 832),
    worked("onednn::qlinear_pointwise",
           "int8[2,32] - 0 int8[32,8] [8] [8] - - 0 - - - - -> bf16[2,8]",
           352),
    worked("onednn::linear_dynamic_fp16", "[2,32] fp16[32,8] - -> [2,8]", 832),
    worked("onednn::linear_relu_dynamic_fp16", "[2,32] fp16[32,8] - -> [2,8]", 832),
};

}  // namespace

extern constinit const OpFamily op_quantized_matmul{
    .name = "quantized_matmul",
    .help = "2 m n k for any width of the factors; scaling and unpacking cost nothing",
    .source =
        "definition: one multiply and one add per term; layouts as in torch's "
        "native_functions.yaml",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
