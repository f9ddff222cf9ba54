// SPDX-License-Identifier: Apache-2.0
//
// Common parts of the worked examples of convolutions.
#pragma once

#include "convolution_cost.h"

namespace flopmeter {

// One image of 6 x 6 with four channels, kernels of 3 x 3, two groups, eight output channels:
// 8 x 2 x 3 x 3 = 144 weights.  A stride of 2 and padding of 1 leave 3 x 3 outputs: 2 * 9 * 144
// FLOPs; 144 + 144 + 72 elements.  Transposed, weights are [4, 4, 3, 3], and each of the 36 inputs
// uses all of them: 2 * 36 * 144 FLOPs; with an output padding of 1 there are 8 x 12 x 12 = 1152
// outputs.
constexpr OpExample forward(std::string_view op, std::string_view call) {
  return op_example(op, call, 2592, 1440);
}
constexpr OpExample backward(std::string_view op, std::string_view call) {
  return op_example(op, call, 5184, 2880);
}
constexpr OpExample transposed(std::string_view op, std::string_view call) {
  return op_example(op, call, 10368, 5760);
}
constexpr OpExample transposed_backward(std::string_view op, std::string_view call) {
  return op_example(op, call, 20736, 11520);
}

}  // namespace flopmeter
