// SPDX-License-Identifier: Apache-2.0
//
// Linear layers, x [..., k] times the transpose of a weight [n, k], and their gradients.
#include "matmul_cost.h"

#include <array>

namespace flopmeter {
namespace {

/// Matmul of the rows of `input` with `weight`, `times` times.
std::optional<OpCost> cost(const Arg& input, const Arg& weight, std::optional<WideInt> times = 1) {
  if (!weight.is_tensor(2) || !times) return std::nullopt;
  const std::optional<Matmul> op = rows_times(input, weight[0]);
  return op ? std::optional{matmul_cost(*op, input, *times)} : std::nullopt;
}

template <int weight>
std::optional<OpCost> forward(const OpCall& call) {
  return cost(call.arg(0), call.arg(weight));
}

/// input, grad_output, weight, and which of input, weight and bias want a gradient.
std::optional<OpCost> backward(const OpCall& call) {
  return cost(call.arg(0), call.arg(2), wanted_gradients(call.arg(3), 2));
}

/// grad_output [..., n] times weight [n, k].
std::optional<OpCost> input_gradient(const OpCall& call) {
  const Arg weight = call.arg(2);
  if (!weight.is_tensor(2)) return std::nullopt;
  const std::optional<Matmul> op = rows_times(call.arg(1), weight[1]);
  return op ? std::optional{matmul_cost(*op, call.arg(1))} : std::nullopt;
}

std::optional<OpCost> weight_gradient(const OpCall& call) {
  return cost(call.arg(1), call.arg(2));
}

constexpr std::array rules = {
    OpRule{.name = "aten::linear", .flop_cost = forward<1>, .offline = true},
    OpRule{.name = "aten::linear_backward", .flop_cost = backward},
    OpRule{.name = "aten::mkldnn_linear", .flop_cost = forward<1>},
    OpRule{.name = "aten::mkldnn_linear_backward", .flop_cost = backward},
    OpRule{.name = "aten::mkldnn_linear_backward_input",
           .flop_cost = input_gradient,
           .dtype_argument = 1},
    OpRule{.name = "aten::mkldnn_linear_backward_weights", .flop_cost = weight_gradient},
    OpRule{.name = "mkldnn::_linear_pointwise", .flop_cost = forward<1>},
    OpRule{.name = "mkldnn::_linear_pointwise.binary", .flop_cost = forward<2>},
    OpRule{.name = "mkl::_mkl_linear", .flop_cost = forward<2>},
};

// Six rows of three, four outputs: 2 * 6 * 3 * 4 = 144 FLOPs, 18 + 12 + 24 elements.
constexpr OpExample once(std::string_view op, std::string_view call) {
  return op_example(op, call, 144, 216);
}

constexpr std::array examples = {
    once("aten::linear", "[2,3,3] [4,3] [4]"),
    op_example("aten::linear_backward", "[2,3,3] [2,3,4] [4,3] (1,1,1)", 288, 432),
    once("aten::linear_backward", "[2,3,3] [2,3,4] [4,3] (0,1,1)"),
    once("aten::mkldnn_linear", "[2,3,3] [4,3] -"),
    once("aten::mkldnn_linear_backward", "[2,3,3] [2,3,4] [4,3] (1,0,1)"),
    once("aten::mkldnn_linear_backward_input", "(2,3,3) [2,3,4] [4,3]"),
    once("aten::mkldnn_linear_backward_weights", "[2,3,4] [2,3,3] [4,3] 1"),
    op_example("mkldnn::_linear_pointwise", "bf16[2,3,3] bf16[4,3] - - - -", 144, 108),
    once("mkldnn::_linear_pointwise.binary", "[2,3,3] [2,3,4] [4,3] - -"),
    once("mkl::_mkl_linear", "[2,3,3] [99] [4,3] - 6"),
};

}  // namespace

extern constinit const OpFamily op_linear{
    .name = "linear",
    .help = "2 x rows x inputs x outputs; the gradients of input and weight each cost the same",
    .source = "definition: one multiply and one add a weight and row",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
