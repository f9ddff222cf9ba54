// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of any number of spatial dimensions, and their gradients, as the dispatcher calls
// them.
#include "convolution_examples.h"

#include <array>

namespace flopmeter {
namespace {

using At = ConvolutionPlaces;

constexpr At standard{
    .stride = 3, .padding = 4, .dilation = 5, .groups = 8, .transposed = 6, .output_padding = 7};

constexpr std::array rules = {
    convolution_rule<standard>("aten::convolution"),
    convolution_rule<standard>("aten::_convolution"),
    convolution_rule<standard>("aten::convolution_overrideable"),
    convolution_rule<At{.input = 1,
                        .weight = 2,
                        .stride = 4,
                        .padding = 5,
                        .dilation = 6,
                        .groups = 9,
                        .transposed = 7,
                        .output_padding = 8,
                        .mask = 10}>("aten::convolution_backward"),
    convolution_rule<At{.input = 1,
                        .weight = 2,
                        .stride = 3,
                        .padding = 4,
                        .dilation = 5,
                        .groups = 8,
                        .transposed = 6,
                        .output_padding = 7,
                        .mask = 9}>("aten::convolution_backward_overrideable"),
};

constexpr std::array examples = {
    forward("aten::convolution", "[1,4,6,6] [8,2,3,3] - (2,2) (1,1) (1,1) 0 (0,0) 2"),
    transposed("aten::convolution", "[1,4,6,6] [4,4,3,3] - (2,2) (1,1) (1,1) 1 (1,1) 2"),
    forward("aten::_convolution", "[1,4,6,6] [8,2,3,3] - (2,2) (1,1) (1,1) 0 (0,0) 2 0 0 1 1"),
    forward("aten::convolution_overrideable", "[1,4,6,6] [8,2,3,3] - (2,2) (1,1) (1,1) 0 (0,0) 2"),
    backward("aten::convolution_backward",
             "[1,8,3,3] [1,4,6,6] [8,2,3,3] (8) (2,2) (1,1) (1,1) 0 (0,0) 2 (1,1,1)"),
    forward("aten::convolution_backward",
            "[1,8,3,3] [1,4,6,6] [8,2,3,3] (8) (2,2) (1,1) (1,1) 0 (0,0) 2 (0,1,1)"),
    transposed_backward("aten::convolution_backward",
                        "[1,8,12,12] [1,4,6,6] [4,4,3,3] (8) (2,2) (1,1) (1,1) 1 (1,1) 2 (1,1,0)"),
    backward("aten::convolution_backward_overrideable",
             "[1,8,3,3] [1,4,6,6] [8,2,3,3] (2,2) (1,1) (1,1) 0 (0,0) 2 (1,1,1)"),
};

}  // namespace

extern constinit const OpFamily op_convolution{
    .name = "convolution",
    .help =
        "2 x batch x positions x weights; the gradients of input and weight each cost the same "
        "again",
    .source =
        "definition: one multiply-add per weight and output position (input position if "
        "transposed)",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
