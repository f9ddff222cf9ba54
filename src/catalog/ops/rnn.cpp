// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers that a library runs as one operator.  Each token passes every weight once; gates
// are elementwise and cost nothing (so _thnn_fused_lstm_cell is not here: its matmuls are mm and
// addmm).
#include "matmul_cost.h"

#include <array>

namespace flopmeter {
namespace {

/// `times` passes of `tokens` over `weights`; each reads inputs and weights and writes outputs.
OpCost cost(const Arg& input, WideInt tokens, WideInt weights, WideInt outputs, WideInt times) {
  const Flops work{times * 2 * tokens * weights};
  const WideInt elements = input.elements() + weights + tokens * outputs;
  return {.executed = work, .model = work, .bytes = {times * elements * input.bits() / 8}};
}

std::optional<WideInt> tokens_of(const Arg& input) {
  const std::optional<Matmul> rows = rows_times(input, 1);
  return rows ? std::optional{rows->m} : std::nullopt;
}

/// input, weight of inputs [gates, inputs], weight of states [gates, hidden].  Backward: both
/// gradients.
template <int times>
std::optional<OpCost> one_layer(const OpCall& call) {
  const Arg of_inputs = call.arg(1);
  const Arg of_states = call.arg(2);
  const std::optional<WideInt> tokens = tokens_of(call.arg(0));
  if (!tokens || !of_inputs.is_tensor(2) || !of_states.is_tensor(2)) return std::nullopt;
  return cost(
      call.arg(0), *tokens, of_inputs.elements() + of_states.elements(), of_states[1], times);
}

/// Positions of the arguments of an operator for a stack of layers.
struct Places {
  int mode = 0;         ///< 0 relu, 1 tanh, 2 LSTM, 3 GRU
  int hidden = 0;       ///< size of the state
  int projection = -1;  ///< size that LSTM outputs are projected to; 0 is none
  int layers = 0;
  int bidirectional = 0;
  int mask = -1;  ///< of a gradient: the last flag asks for that of the weights
};

template <Places at>
std::optional<OpCost> stack(const OpCall& call) {
  constexpr std::array<WideInt, 4> gates_of = {1, 1, 4, 3};
  const Arg input = call.arg(0);
  const std::int64_t mode = call.arg(at.mode).number_or(-1);
  const WideInt hidden = call.arg(at.hidden).number_or(0);
  const WideInt layers = call.arg(at.layers).number_or(0);
  const std::optional<WideInt> tokens = tokens_of(input);
  if (!tokens || mode < 0 || mode > 3 || hidden <= 0 || layers <= 0) return std::nullopt;
  const WideInt gates = gates_of[static_cast<std::size_t>(mode)];
  const WideInt directions = call.arg(at.bidirectional).number_or(0) != 0 ? 2 : 1;
  const WideInt projection = call.arg(at.projection).number_or(0);
  const WideInt output = projection > 0 ? projection : hidden;
  // The first layer reads the inputs, each further layer the outputs of both directions below.
  const WideInt inputs = input[-1] + (layers - 1) * directions * output;
  const WideInt weights = directions * (gates * hidden * (inputs + layers * output) +
                                        layers * hidden * (projection > 0 ? projection : 0));
  WideInt times = 1;
  if (at.mask >= 0) {  // data gradients always, weight gradients on request
    const Arg mask = call.arg(at.mask);
    if (!mask.is_list() || mask.rank != 4) return std::nullopt;
    times = mask[3] != 0 ? 2 : 1;
  }
  return cost(input, *tokens, weights, directions * output, times);
}

/// All matrices among `parameters` (the rest are biases).
template <int input, int parameters, int times>
std::optional<OpCost> listed(const OpCall& call) {
  const Arg list = call.arg(parameters);
  const std::optional<WideInt> tokens = tokens_of(call.arg(input));
  if (!tokens || list.kind != Arg::Kind::tensors) return std::nullopt;
  WideInt weights = 0;
  WideInt outputs = 0;
  for (int i = 0; i < list.rank; ++i) {
    if (!list.items[i].is_tensor(2)) continue;
    weights += list.items[i].elements();
    outputs = list.items[i][1];
  }
  return cost(call.arg(input), *tokens, weights, outputs, times);
}

/// A cell with packed weights: input [batch, inputs]; the state that comes back is [batch, hidden].
template <int gates>
std::optional<OpCost> cell(const OpCall& call) {
  const Arg input = call.arg(0);
  if (!input.is_tensor(2) || !call.output.is_tensor(2)) return std::nullopt;
  const WideInt hidden = call.output[1];
  return cost(input, input[0], gates * hidden * (input[1] + hidden), hidden, 1);
}

/// A stack whose weights are packed: its sizes follow from the state [layers x directions, batch,
/// hidden] at `state`.
template <int gates, int state>
std::optional<OpCost> packed_stack(const OpCall& call) {
  const Arg input = call.arg(0);
  const Arg states = call.arg(state);
  const bool is_list = states.kind == Arg::Kind::tensors && states.rank > 0;
  const Arg first = is_list ? states.items[0] : states;
  const WideInt layers = call.arg(state + 3).number_or(0);
  const std::optional<WideInt> tokens = tokens_of(input);
  if (!tokens || !first.is_tensor(3) || layers <= 0) return std::nullopt;
  const WideInt hidden = first[2];
  const WideInt directions = call.arg(state + 6).number_or(0) != 0 ? 2 : 1;
  const WideInt inputs = input[-1] + (layers - 1) * directions * hidden;
  const WideInt weights = directions * gates * hidden * (inputs + layers * hidden);
  return cost(input, *tokens, weights, directions * hidden, 1);
}
template <int gates, int state>
constexpr OpRule packed_rule(std::string_view name) {
  return {.name = name, .flop_cost = packed_stack<gates, state>, .compute_dtype = Dtype::int8};
}

constexpr std::array rules = {
    packed_rule<4, 1>("aten::quantized_lstm"),
    packed_rule<4, 2>("aten::quantized_lstm.data"),
    packed_rule<4, 2>("aten::quantized_lstm.data_legacy"),
    packed_rule<3, 1>("aten::quantized_gru"),
    packed_rule<3, 2>("aten::quantized_gru.data"),
    packed_rule<3, 2>("aten::quantized_gru.data_legacy"),
    OpRule{.name = "aten::mkldnn_rnn_layer", .flop_cost = one_layer<1>},
    OpRule{.name = "aten::mkldnn_rnn_layer_backward", .flop_cost = one_layer<2>},
    OpRule{.name = "aten::_cudnn_rnn",
           .flop_cost = stack<Places{
               .mode = 6, .hidden = 7, .projection = 8, .layers = 9, .bidirectional = 13}>},
    OpRule{.name = "aten::_cudnn_rnn_backward",
           .flop_cost = stack<Places{.mode = 10,
                                     .hidden = 11,
                                     .projection = 12,
                                     .layers = 13,
                                     .bidirectional = 17,
                                     .mask = 21}>},
    OpRule{.name = "aten::miopen_rnn",
           .flop_cost = stack<Places{.mode = 5, .hidden = 6, .layers = 7, .bidirectional = 11}>},
    OpRule{
        .name = "aten::miopen_rnn_backward",
        .flop_cost =
            stack<Places{.mode = 10, .hidden = 11, .layers = 12, .bidirectional = 16, .mask = 20}>},
    OpRule{.name = "aten::_lstm_mps", .flop_cost = listed<0, 2, 1>},
    OpRule{.name = "aten::lstm_mps_backward", .flop_cost = listed<5, 8, 2>, .dtype_argument = 5},
    OpRule{.name = "quantized::quantized_lstm_cell_dynamic",
           .flop_cost = cell<4>,
           .compute_dtype = Dtype::int8},
    OpRule{.name = "quantized::quantized_gru_cell_dynamic",
           .flop_cost = cell<3>,
           .compute_dtype = Dtype::int8},
    OpRule{.name = "quantized::quantized_rnn_relu_cell_dynamic",
           .flop_cost = cell<1>,
           .compute_dtype = Dtype::int8},
    OpRule{.name = "quantized::quantized_rnn_tanh_cell_dynamic",
           .flop_cost = cell<1>,
           .compute_dtype = Dtype::int8},
};

// Five steps of two sequences: 10 tokens.  LSTM from 3 inputs to 4: 16 x (3 + 4) = 112 weights,
// 2240 FLOPs; 30 + 112 + 40 elements.
constexpr OpExample worked(std::string_view op,
                           std::string_view call,
                           WideInt flops,
                           WideInt elements) {
  return op_example(op, call, flops, 4 * elements);
}
constexpr OpExample lstm(std::string_view op, std::string_view call) {
  return worked(op, call, 2240, 182);
}
constexpr OpExample lstm_backward(std::string_view op, std::string_view call) {
  return worked(op, call, 4480, 364);
}

constexpr std::array examples = {
    lstm("aten::quantized_lstm", "[5,2,3] {[1,2,4] [1,2,4]} - 1 1 - 0 0 0"),
    lstm("aten::quantized_lstm.data", "[10,3] [5] {[1,2,4] [1,2,4]} - 1 1 - 0 0"),
    lstm("aten::quantized_lstm.data_legacy", "[10,3] [5] {[1,2,4] [1,2,4]} - 1 1 - 0 0"),
    // two layers in both directions: 2 x 12 x (3 + 8 + 2 x 4) = 456 weights; 30 + 456 + 10 x 8
    // elements
    worked("aten::quantized_gru", "[5,2,3] [4,2,4] - 1 2 - 0 1 0", 9120, 566),
    worked("aten::quantized_gru.data", "[10,3] [5] [4,2,4] - 1 2 - 0 1", 9120, 566),
    worked("aten::quantized_gru.data_legacy", "[10,3] [5] [4,2,4] - 1 2 - 0 1", 9120, 566),
    lstm("aten::mkldnn_rnn_layer",
         "[5,2,3] [16,3] [16,4] [16] [16] [1,2,4] [1,2,4] 0 () 2 4 1 1 0 0 1"),
    lstm_backward("aten::mkldnn_rnn_layer_backward",
                  "[5,2,3] [16,3] [16,4] [16] [16] [1,2,4] [1,2,4] [5,2,4] [1,2,4] [1,2,4] [5,2,4] "
                  "- - 0 2 4 1 1 1 0 () 0 [9]"),
    lstm("aten::_cudnn_rnn",
         "[5,2,3] {[16,3] [16,4] [16] [16]} 4 - [1,2,4] [1,2,4] 2 4 0 1 0 - 1 0 () -"),
    // two layers in both directions, outputs of 4 projected to 2: first 2 x (16 x (3 + 2) + 8) =
    // 176 weights, second 2 x (16 x (4 + 2) + 8) = 208; 30 + 384 + 10 x 4 elements
    worked(
        "aten::_cudnn_rnn", "[5,2,3] {[16,3]} 4 - [4,2,2] [4,2,4] 2 4 2 2 0 - 1 1 () -", 7680, 454),
    lstm_backward("aten::_cudnn_rnn_backward",
                  "[5,2,3] {[16,3]} 4 [112] [1,2,4] [1,2,4] [5,2,4] [5,2,4] - - 2 4 0 1 0 - 1 0 () "
                  "- [9] (1,1,1,1)"),
    lstm("aten::_cudnn_rnn_backward",
         "[5,2,3] {[16,3]} 4 [112] [1,2,4] [1,2,4] [5,2,4] [5,2,4] - - 2 4 0 1 0 - 1 0 () - [9] "
         "(1,1,1,0)"),
    // GRU: 12 x 7 = 84 weights; 30 + 84 + 40 elements
    worked("aten::miopen_rnn", "[5,2,3] {[12,3] [12,4]} 4 [1,2,4] - 3 4 1 0 - 1 0 () -", 1680, 154),
    worked("aten::miopen_rnn_backward",
           "[5,2,3] {[12,3]} 4 [84] [1,2,4] - [5,2,4] [5,2,4] - - 3 4 1 0 - 1 0 () - [9] (1,1,0,1)",
           3360,
           308),
    lstm("aten::_lstm_mps", "[5,2,3] {[1,2,4] [1,2,4]} {[16,3] [16,4] [16] [16]} 1 1 - 1 0 0"),
    lstm_backward("aten::lstm_mps_backward",
                  "- - - [9] [9] [5,2,3] [9] {[1,2,4]} {[16,3] [16,4] [16] [16]} 1 1 - 1 0 0"),
    // one step of two sequences: 2 tokens; 6 + 112 + 8 elements
    worked("quantized::quantized_lstm_cell_dynamic",
           "[2,3] {[2,4] [2,4]} - - [16] [16] -> [2,4]",
           448,
           126),
    worked("quantized::quantized_gru_cell_dynamic", "[2,3] [2,4] - - [12] [12] -> [2,4]", 336, 98),
    worked(
        "quantized::quantized_rnn_relu_cell_dynamic", "[2,3] [2,4] - - [4] [4] -> [2,4]", 112, 42),
    worked(
        "quantized::quantized_rnn_tanh_cell_dynamic", "[2,3] [2,4] - - [4] [4] -> [2,4]", 112, 42),
};

}  // namespace

extern constinit const OpFamily op_rnn{
    .name = "rnn",
    .help =
        "2 x tokens x weights; the gradients of inputs and states, and of weights, each cost the "
        "same again",
    .source = "definitions of torch.nn.LSTM, GRU and RNN; 4, 3 and 1 gates",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
