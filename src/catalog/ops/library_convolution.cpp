// SPDX-License-Identifier: Apache-2.0
//
// Convolutions under the names of single libraries and algorithms: what compiled graphs and traces
// show, and programs may call.
#include "convolution_examples.h"

#include <array>

namespace flopmeter {
namespace {

using At = ConvolutionPlaces;

constexpr At padding_first{.stride = 3, .padding = 2, .dilation = 4, .groups = 5};
constexpr At bias_padding_first{.stride = 4, .padding = 3, .dilation = 5, .groups = 6};
constexpr At with_relu{.stride = 3, .padding = 4, .dilation = 5, .groups = 6};
constexpr At with_add_relu{.stride = 5, .padding = 6, .dilation = 7, .groups = 8};
constexpr At depthwise{.stride = 4, .padding = 5, .dilation = 6, .channelwise = true};
constexpr At quantized{.weight = 3, .stride = 7, .padding = 8, .dilation = 9, .groups = 10};
constexpr At quantized_binary{.weight = 3, .stride = 8, .padding = 9, .dilation = 10, .groups = 11};

/// input, weight, kernel size.  These operators also take an input without a batch: unsupported.
template <At at>
constexpr OpRule own_rule(std::string_view name) {
  OpRule rule = convolution_rule<at>(name);
  rule.flop_cost = [](const OpCall& call) -> std::optional<OpCost> {
    const bool has_batch = call.arg(at.input).rank == call.arg(at.weight + 1).rank + 2;
    return has_batch ? convolution_cost<at>(call) : std::nullopt;
  };
  return rule;
}
constexpr At own{.stride = 4, .padding = 5};
constexpr At own_dilated{.stride = 4, .padding = 5, .dilation = 6};
constexpr At own_transposed{
    .stride = 4, .padding = 5, .dilation = 7, .transposed = always, .output_padding = 6};

constexpr std::array rules = {
    own_rule<own>("aten::_slow_conv2d_forward"),
    own_rule<At{.input = 1, .weight = 2, .stride = 4, .padding = 5, .mask = 6}>(
        "aten::_slow_conv2d_backward"),
    own_rule<own>("aten::slow_conv3d_forward"),
    own_rule<own_dilated>("aten::slow_conv_dilated2d"),
    own_rule<own_dilated>("aten::slow_conv_dilated3d"),
    own_rule<own_transposed>("aten::slow_conv_transpose2d"),
    own_rule<own_transposed>("aten::slow_conv_transpose3d"),
    convolution_rule<padding_first>("aten::cudnn_convolution"),
    convolution_rule<with_relu>("aten::cudnn_convolution_relu"),
    convolution_rule<with_add_relu>("aten::cudnn_convolution_add_relu"),
    convolution_rule<At{.stride = 4,
                        .padding = 2,
                        .dilation = 5,
                        .groups = 6,
                        .transposed = always,
                        .output_padding = 3}>("aten::cudnn_convolution_transpose"),
    convolution_rule<bias_padding_first>("aten::miopen_convolution"),
    convolution_rule<bias_padding_first>("aten::miopen_depthwise_convolution"),
    convolution_rule<with_relu>("aten::miopen_convolution_relu"),
    convolution_rule<with_add_relu>("aten::miopen_convolution_add_relu"),
    convolution_rule<At{.stride = 5,
                        .padding = 3,
                        .dilation = 6,
                        .groups = 7,
                        .transposed = always,
                        .output_padding = 4}>("aten::miopen_convolution_transpose"),
    convolution_rule<bias_padding_first>("aten::mkldnn_convolution"),
    convolution_rule<bias_padding_first>("aten::_mps_convolution"),
    convolution_rule<At{.stride = 4,
                        .padding = 2,
                        .dilation = 5,
                        .groups = 6,
                        .transposed = always,
                        .output_padding = 3}>("aten::_mps_convolution_transpose"),
    convolution_rule<At{
        .weight = 2, .stride = 4, .padding = 3, .dilation = 5, .groups = 6, .mask = 7}>(
        "aten::mps_convolution_backward"),
    convolution_rule<At{.weight = 2,
                        .stride = 5,
                        .padding = 3,
                        .dilation = 6,
                        .groups = 7,
                        .transposed = always,
                        .output_padding = 4,
                        .mask = 8}>("aten::mps_convolution_transpose_backward"),
    convolution_rule<depthwise>("aten::_conv_depthwise2d"),
    convolution_rule<depthwise>("aten::conv_depthwise3d"),
    convolution_rule<At{.stride = 4, .padding = 3}>("aten::_nnpack_spatial_convolution"),
    convolution_rule<bias_padding_first>("mkldnn::_convolution_pointwise"),
    convolution_rule<At{.weight = 2, .stride = 5, .padding = 4, .dilation = 6, .groups = 7}>(
        "mkldnn::_convolution_pointwise.binary"),
    convolution_rule<At{
        .input = 1, .weight = 2, .stride = 5, .padding = 4, .dilation = 6, .groups = 7}>(
        "mkldnn::_convolution_pointwise_.binary"),
    convolution_rule<At{.stride = 5,
                        .padding = 3,
                        .dilation = 6,
                        .groups = 7,
                        .transposed = always,
                        .output_padding = 4}>("mkldnn::_convolution_transpose_pointwise"),
    convolution_rule<quantized>("onednn::qconv1d_pointwise"),
    convolution_rule<quantized>("onednn::qconv2d_pointwise"),
    convolution_rule<quantized_binary>("onednn::qconv2d_pointwise.binary"),
    convolution_rule<quantized_binary>("onednn::qconv2d_pointwise.binary_tensor"),
    convolution_rule<quantized>("onednn::qconv3d_pointwise"),
    convolution_rule<quantized>("onednn::qconv_pointwise"),
};

constexpr OpExample int8(std::string_view op, std::string_view call) {
  return op_example(op, call, 2592, 360);
}

constexpr std::array examples = {
    // no groups: 8 x 4 x 3 x 3 weights, 3 x 3 outputs; 144 + 288 + 72 elements
    op_example("aten::_slow_conv2d_forward", "[1,4,6,6] [8,4,3,3] (3,3) - (2,2) (1,1)", 5184, 2016),
    op_example("aten::_slow_conv2d_backward",
               "[1,8,3,3] [1,4,6,6] [8,4,3,3] (3,3) (2,2) (1,1) (1,1,0)",
               10368,
               4032),
    // kernels of 1 x 3 x 3 on one frame are the same
    op_example("aten::slow_conv3d_forward",
               "[1,4,1,6,6] [8,4,1,3,3] (1,3,3) - (1,2,2) (0,1,1)",
               5184,
               2016),
    // a reach of five leaves 2 x 2 outputs: 2 * 4 * 288 FLOPs; 144 + 288 + 32 elements
    op_example(
        "aten::slow_conv_dilated2d", "[1,4,6,6] [8,4,3,3] (3,3) - (2,2) (1,1) (2,2)", 2304, 1856),
    op_example("aten::slow_conv_dilated3d",
               "[1,4,1,6,6] [8,4,1,3,3] (1,3,3) - (1,2,2) (0,1,1) (1,2,2)",
               2304,
               1856),
    // each of the 36 inputs uses 4 x 8 x 3 x 3 weights; 144 + 288 + 1152 elements
    op_example("aten::slow_conv_transpose2d",
               "[1,4,6,6] [4,8,3,3] (3,3) - (2,2) (1,1) (1,1) (1,1)",
               20736,
               6336),
    op_example("aten::slow_conv_transpose3d",
               "[1,4,1,6,6] [4,8,1,3,3] (1,3,3) - (1,2,2) (0,1,1) (0,1,1) (1,1,1)",
               20736,
               6336),
    forward("aten::cudnn_convolution", "[1,4,6,6] [8,2,3,3] (1,1) (2,2) (1,1) 2 0 0 1"),
    forward("aten::cudnn_convolution_relu", "[1,4,6,6] [8,2,3,3] - (2,2) (1,1) (1,1) 2"),
    forward("aten::cudnn_convolution_add_relu",
            "[1,4,6,6] [8,2,3,3] [1,8,3,3] - - (2,2) (1,1) (1,1) 2"),
    transposed("aten::cudnn_convolution_transpose",
               "[1,4,6,6] [4,4,3,3] (1,1) (1,1) (2,2) (1,1) 2 0 0 1"),
    forward("aten::miopen_convolution", "[1,4,6,6] [8,2,3,3] - (1,1) (2,2) (1,1) 2 0 0"),
    forward("aten::miopen_depthwise_convolution", "[1,4,6,6] [8,2,3,3] - (1,1) (2,2) (1,1) 2 0 0"),
    forward("aten::miopen_convolution_relu", "[1,4,6,6] [8,2,3,3] - (2,2) (1,1) (1,1) 2"),
    forward("aten::miopen_convolution_add_relu",
            "[1,4,6,6] [8,2,3,3] [1,8,3,3] - - (2,2) (1,1) (1,1) 2"),
    transposed("aten::miopen_convolution_transpose",
               "[1,4,6,6] [4,4,3,3] - (1,1) (1,1) (2,2) (1,1) 2 0 0"),
    forward("aten::mkldnn_convolution", "[1,4,6,6] [8,2,3,3] - (1,1) (2,2) (1,1) 2"),
    forward("aten::_mps_convolution", "[1,4,6,6] [8,2,3,3] - (1,1) (2,2) (1,1) 2"),
    transposed("aten::_mps_convolution_transpose", "[1,4,6,6] [4,4,3,3] (1,1) (1,1) (2,2) (1,1) 2"),
    backward("aten::mps_convolution_backward",
             "[1,4,6,6] [1,8,3,3] [8,2,3,3] (1,1) (2,2) (1,1) 2 (1,1,1)"),
    transposed_backward("aten::mps_convolution_transpose_backward",
                        "[1,4,6,6] [1,8,12,12] [4,4,3,3] (1,1) (1,1) (2,2) (1,1) 2 (1,1)"),
    // four groups of one channel: 4 x 3 x 3 weights, four output channels
    op_example(
        "aten::_conv_depthwise2d", "[1,4,6,6] [4,1,3,3] (3,3) - (2,2) (1,1) (1,1)", 648, 864),
    // kernels of 1 x 3 x 3 on one frame are the same
    op_example("aten::conv_depthwise3d",
               "[1,4,1,6,6] [4,1,1,3,3] (1,3,3) - (1,2,2) (0,1,1) (1,1,1)",
               648,
               864),
    // no groups: 8 x 4 x 3 x 3 weights
    op_example(
        "aten::_nnpack_spatial_convolution", "[1,4,6,6] [8,4,3,3] - (1,1) (2,2)", 5184, 2016),
    forward("mkldnn::_convolution_pointwise", "[1,4,6,6] [8,2,3,3] - (1,1) (2,2) (1,1) 2 - - -"),
    forward("mkldnn::_convolution_pointwise.binary",
            "[1,4,6,6] [1,8,3,3] [8,2,3,3] - (1,1) (2,2) (1,1) 2 - - - - -"),
    forward("mkldnn::_convolution_pointwise_.binary",
            "[1,8,3,3] [1,4,6,6] [8,2,3,3] - (1,1) (2,2) (1,1) 2 - - - - -"),
    transposed("mkldnn::_convolution_transpose_pointwise",
               "[1,4,6,6] [4,4,3,3] - (1,1) (1,1) (2,2) (1,1) 2 - - -"),
    // one byte an element; weights with a dimension for the groups; one dimension of 36 has 18
    // outputs
    op_example("onednn::qconv1d_pointwise",
               "int8[1,4,36] - 0 int8[8,2,3] [8] [8] - (2) (1) (1) 2 - 0 - - - -",
               1728,
               336),
    int8("onednn::qconv2d_pointwise",
         "int8[1,4,6,6] - 0 int8[2,4,2,3,3] [8] [8] - (2,2) (1,1) (1,1) 2 - 0 - - - -"),
    int8("onednn::qconv2d_pointwise.binary",
         "int8[1,4,6,6] - 0 int8[8,2,3,3] [8] [8] int8[1,8,3,3] - (2,2) (1,1) (1,1) 2 - 0 - - 0 - "
         "- - - -"),
    int8("onednn::qconv2d_pointwise.binary_tensor",
         "int8[1,4,6,6] [1] [1] int8[8,2,3,3] [8] [8] int8[1,8,3,3] - (2,2) (1,1) (1,1) 2 - 0 - - "
         "0 - - - - -"),
    int8("onednn::qconv3d_pointwise",
         "int8[1,4,1,6,6] - 0 int8[8,2,1,3,3] [8] [8] - (1,2,2) (0,1,1) (1,1,1) 2 - 0 - - - -"),
    int8("onednn::qconv_pointwise",
         "int8[1,4,6,6] - 0 int8[8,2,3,3] [8] [8] - (2,2) (1,1) (1,1) 2 - 0 - - - -"),
};

}  // namespace

extern constinit const OpFamily op_library_convolution{
    .name = "library_convolution",
    .help = "as convolution",
    .source = "as convolution; arguments as in the schemas of torch 2.13",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
