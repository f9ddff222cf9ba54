// SPDX-License-Identifier: Apache-2.0
//
// Calls of convolution operators: the positions of their arguments, and their cost.  The cost is
// that of the direct algorithm, including padding, for every algorithm of the library.
#pragma once

#include "matmul_cost.h"

namespace flopmeter {

inline constexpr int never = -1;
inline constexpr int always = -2;

/// Where an operator has its arguments.
struct ConvolutionPlaces {
  int input = 0;
  int weight = 1;
  int stride = 3;
  int padding = 4;
  int dilation = never;
  int groups = never;
  int transposed = never;  ///< the place of a flag, or always, or never
  int output_padding = never;
  bool channelwise = false;  ///< as many groups as input channels
  int mask = never;          ///< of a gradient: which of input, weight and bias are wanted
};

/// Element `i` of a list argument; lists of one element stand for all dimensions.
constexpr std::int64_t element_of(const OpCall& call, int place, int i, std::int64_t otherwise) {
  if (place < 0) return otherwise;
  const Arg list = call.arg(place);
  if (list.is_number()) return list.integer;
  if (!list.is_list() || list.rank == 0) return otherwise;
  return list[i < list.rank ? i : list.rank - 1];
}

template <ConvolutionPlaces at>
std::optional<OpCost> convolution_cost(const OpCall& call) {
  const Arg x = call.arg(at.input);
  const Arg w = call.arg(at.weight);
  // The layout of a library may have a separate dimension for the groups of a weight.
  if (!x.is_tensor() || !w.is_tensor() || x.rank < 3 || w.rank < x.rank) return std::nullopt;
  const bool transposed =
      at.transposed == always || (at.transposed >= 0 && call.arg(at.transposed).number_or(0) != 0);
  const int dims = x.rank - 2;

  WideInt input_positions = 1;
  WideInt output_positions = 1;
  WideInt kernel = 1;
  for (int i = 0; i < dims; ++i) {
    const std::int64_t in = x[2 + i];
    const std::int64_t taps = w[i - dims];
    const std::int64_t stride = element_of(call, at.stride, i, 1);
    const std::int64_t reach = element_of(call, at.dilation, i, 1) * (taps - 1) + 1;
    const std::int64_t padding = 2 * element_of(call, at.padding, i, 0);
    if (taps <= 0 || stride <= 0) return std::nullopt;
    const std::int64_t out =
        transposed ? (in - 1) * stride + reach - padding + element_of(call, at.output_padding, i, 0)
                   : (in + padding < reach ? 0 : (in + padding - reach) / stride + 1);
    input_positions *= in;
    output_positions *= out;
    kernel *= taps;
  }
  if (x[1] <= 0) return std::nullopt;
  const WideInt groups = at.channelwise ? x[1] : call.arg(at.groups).number_or(1);
  const WideInt output_channels = w.elements() * groups / (x[1] * kernel);
  const Convolution op{.batch = x[0],
                       .positions = transposed ? input_positions : output_positions,
                       .weights = w.elements()};

  const std::optional<WideInt> wanted =
      at.mask < 0 ? WideInt{1} : wanted_gradients(call.arg(at.mask), 2);
  if (!wanted) return std::nullopt;
  const Flops work = *wanted * (x.complex ? 4 : 1) * flops(op);
  const WideInt elements = x.elements() + w.elements() + x[0] * output_channels * output_positions;
  return OpCost{.executed = work, .model = work, .bytes = {*wanted * elements * x.bits() / 8}};
}

template <ConvolutionPlaces at>
constexpr OpRule convolution_rule(std::string_view name) {
  return {.name = name, .flop_cost = convolution_cost<at>, .dtype_argument = at.input};
}

}  // namespace flopmeter
