// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of any number of spatial dimensions, and their gradients, under all the names that back ends give
// them.  Counted as the direct algorithm does it, padding included, whatever the library chose to run.
#include "matmul_cost.h"

#include <array>

namespace flopmeter {
namespace {

constexpr int never = -1;
constexpr int always = -2;

/// Where an operator has its arguments.
struct Places {
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

constexpr Places standard{.dilation = 5, .groups = 8, .transposed = 6, .output_padding = 7};

/// Element `i` of a list argument; lists of one element stand for all dimensions.
constexpr std::int64_t element(const OpCall& call, int place, int i, std::int64_t otherwise) {
  if (place < 0) return otherwise;
  const Arg list = call.arg(place);
  if (list.is_number()) return list.integer;
  if (!list.is_list() || list.rank == 0) return otherwise;
  return list[i < list.rank ? i : list.rank - 1];
}

template <Places at>
std::optional<OpCost> price(const OpCall& call) {
  const Arg x = call.arg(at.input);
  const Arg w = call.arg(at.weight);
  // A library's own layout may give the groups of a weight a dimension of their own.
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
    const std::int64_t stride = element(call, at.stride, i, 1);
    const std::int64_t reach = element(call, at.dilation, i, 1) * (taps - 1) + 1;
    const std::int64_t padding = 2 * element(call, at.padding, i, 0);
    if (taps <= 0 || stride <= 0) return std::nullopt;
    const std::int64_t out = transposed
                                 ? (in - 1) * stride + reach - padding + element(call, at.output_padding, i, 0)
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

  const std::optional<WideInt> wanted = at.mask < 0 ? WideInt{1} : wanted_gradients(call.arg(at.mask), 2);
  if (!wanted) return std::nullopt;
  const Flops work = *wanted * (x.complex ? 4 : 1) * flops(op);
  const WideInt elements = x.elements() + w.elements() + x[0] * output_channels * output_positions;
  return OpCost{.executed = work, .model = work, .bytes = {*wanted * elements * x.bits() / 8}};
}

template <Places at>
constexpr OpRule rule(std::string_view name) {
  return {.name = name, .price = price<at>, .dtype_argument = at.input};
}

constexpr Places padding_first{.stride = 3, .padding = 2, .dilation = 4, .groups = 5};
constexpr Places bias_padding_first{.stride = 4, .padding = 3, .dilation = 5, .groups = 6};
constexpr Places with_relu{.stride = 3, .padding = 4, .dilation = 5, .groups = 6};
constexpr Places with_add_relu{.stride = 5, .padding = 6, .dilation = 7, .groups = 8};
constexpr Places depthwise{.stride = 4, .padding = 5, .dilation = 6, .channelwise = true};
constexpr Places quantized{.weight = 3, .stride = 7, .padding = 8, .dilation = 9, .groups = 10};
constexpr Places quantized_binary{.weight = 3, .stride = 8, .padding = 9, .dilation = 10, .groups = 11};

constexpr std::array rules = {
    rule<standard>("aten::convolution"),
    rule<standard>("aten::_convolution"),
    rule<standard>("aten::convolution_overrideable"),
    rule<Places{.input = 1, .weight = 2, .stride = 4, .padding = 5, .dilation = 6, .groups = 9, .transposed = 7,
                .output_padding = 8, .mask = 10}>("aten::convolution_backward"),
    rule<Places{.input = 1, .weight = 2, .stride = 3, .padding = 4, .dilation = 5, .groups = 8, .transposed = 6,
                .output_padding = 7, .mask = 9}>("aten::convolution_backward_overrideable"),
    rule<padding_first>("aten::cudnn_convolution"),
    rule<with_relu>("aten::cudnn_convolution_relu"),
    rule<with_add_relu>("aten::cudnn_convolution_add_relu"),
    rule<Places{.stride = 4, .padding = 2, .dilation = 5, .groups = 6, .transposed = always, .output_padding = 3}>(
        "aten::cudnn_convolution_transpose"),
    rule<bias_padding_first>("aten::miopen_convolution"),
    rule<bias_padding_first>("aten::miopen_depthwise_convolution"),
    rule<with_relu>("aten::miopen_convolution_relu"),
    rule<with_add_relu>("aten::miopen_convolution_add_relu"),
    rule<Places{.stride = 5, .padding = 3, .dilation = 6, .groups = 7, .transposed = always, .output_padding = 4}>(
        "aten::miopen_convolution_transpose"),
    rule<bias_padding_first>("aten::mkldnn_convolution"),
    rule<bias_padding_first>("aten::_mps_convolution"),
    rule<Places{.stride = 4, .padding = 2, .dilation = 5, .groups = 6, .transposed = always, .output_padding = 3}>(
        "aten::_mps_convolution_transpose"),
    rule<Places{.weight = 2, .stride = 4, .padding = 3, .dilation = 5, .groups = 6, .mask = 7}>(
        "aten::mps_convolution_backward"),
    rule<Places{.weight = 2, .stride = 5, .padding = 3, .dilation = 6, .groups = 7, .transposed = always,
                .output_padding = 4, .mask = 8}>("aten::mps_convolution_transpose_backward"),
    rule<depthwise>("aten::_conv_depthwise2d"),
    rule<depthwise>("aten::conv_depthwise3d"),
    rule<Places{.stride = 4, .padding = 3}>("aten::_nnpack_spatial_convolution"),
    rule<bias_padding_first>("mkldnn::_convolution_pointwise"),
    rule<Places{.weight = 2, .stride = 5, .padding = 4, .dilation = 6, .groups = 7}>(
        "mkldnn::_convolution_pointwise.binary"),
    rule<Places{.input = 1, .weight = 2, .stride = 5, .padding = 4, .dilation = 6, .groups = 7}>(
        "mkldnn::_convolution_pointwise_.binary"),
    rule<Places{.stride = 5, .padding = 3, .dilation = 6, .groups = 7, .transposed = always, .output_padding = 4}>(
        "mkldnn::_convolution_transpose_pointwise"),
    rule<quantized>("onednn::qconv1d_pointwise"),
    rule<quantized>("onednn::qconv2d_pointwise"),
    rule<quantized_binary>("onednn::qconv2d_pointwise.binary"),
    rule<quantized_binary>("onednn::qconv2d_pointwise.binary_tensor"),
    rule<quantized>("onednn::qconv3d_pointwise"),
    rule<quantized>("onednn::qconv_pointwise"),
};

// One image of 6 x 6 with four channels, kernels of 3 x 3, two groups, eight output channels: 8 x 2 x 3 x 3 = 144
// weights.  With a stride of 2 and padding of 1 there are 3 x 3 outputs: 2 * 9 * 144 = 2592 FLOPs, and
// 144 + 144 + 72 elements.  Transposed, weights are [4, 4, 3, 3], and each of the 36 inputs uses all of them:
// 2 * 36 * 144 = 10368 FLOPs; with output padding of 1 there are 8 x 12 x 12 = 1152 outputs.
constexpr std::array examples = {
    OpExample{.op = "aten::convolution",
              .call = "[1,4,6,6] [8,2,3,3] - (2,2) (1,1) (1,1) 0 (0,0) 2",
              .executed = 2592, .model = 2592, .bytes = 1440},
    OpExample{.op = "aten::convolution",
              .call = "[1,4,6,6] [4,4,3,3] - (2,2) (1,1) (1,1) 1 (1,1) 2",
              .executed = 10368, .model = 10368, .bytes = 5760},
    OpExample{.op = "aten::_convolution",
              .call = "[1,4,6,6] [8,2,3,3] - (2,2) (1,1) (1,1) 0 (0,0) 2 0 0 1 1",
              .executed = 2592, .model = 2592, .bytes = 1440},
    OpExample{.op = "aten::convolution_overrideable",
              .call = "[1,4,6,6] [8,2,3,3] - (2,2) (1,1) (1,1) 0 (0,0) 2",
              .executed = 2592, .model = 2592, .bytes = 1440},
    OpExample{.op = "aten::convolution_backward",
              .call = "[1,8,3,3] [1,4,6,6] [8,2,3,3] (8) (2,2) (1,1) (1,1) 0 (0,0) 2 (1,1,1)",
              .executed = 5184, .model = 5184, .bytes = 2880},
    OpExample{.op = "aten::convolution_backward",
              .call = "[1,8,3,3] [1,4,6,6] [8,2,3,3] (8) (2,2) (1,1) (1,1) 0 (0,0) 2 (0,1,1)",
              .executed = 2592, .model = 2592, .bytes = 1440},
    OpExample{.op = "aten::convolution_backward",
              .call = "[1,8,12,12] [1,4,6,6] [4,4,3,3] (8) (2,2) (1,1) (1,1) 1 (1,1) 2 (1,1,0)",
              .executed = 20736, .model = 20736, .bytes = 11520},
    OpExample{.op = "aten::convolution_backward_overrideable",
              .call = "[1,8,3,3] [1,4,6,6] [8,2,3,3] (2,2) (1,1) (1,1) 0 (0,0) 2 (1,1,1)",
              .executed = 5184, .model = 5184, .bytes = 2880},
    OpExample{.op = "aten::cudnn_convolution",
              .call = "[1,4,6,6] [8,2,3,3] (1,1) (2,2) (1,1) 2 0 0 1",
              .executed = 2592, .model = 2592, .bytes = 1440},
    OpExample{.op = "aten::cudnn_convolution_relu",
              .call = "[1,4,6,6] [8,2,3,3] - (2,2) (1,1) (1,1) 2",
              .executed = 2592, .model = 2592, .bytes = 1440},
    OpExample{.op = "aten::cudnn_convolution_add_relu",
              .call = "[1,4,6,6] [8,2,3,3] [1,8,3,3] - - (2,2) (1,1) (1,1) 2",
              .executed = 2592, .model = 2592, .bytes = 1440},
    OpExample{.op = "aten::cudnn_convolution_transpose",
              .call = "[1,4,6,6] [4,4,3,3] (1,1) (1,1) (2,2) (1,1) 2 0 0 1",
              .executed = 10368, .model = 10368, .bytes = 5760},
    OpExample{.op = "aten::miopen_convolution",
              .call = "[1,4,6,6] [8,2,3,3] - (1,1) (2,2) (1,1) 2 0 0",
              .executed = 2592, .model = 2592, .bytes = 1440},
    OpExample{.op = "aten::miopen_depthwise_convolution",
              .call = "[1,4,6,6] [8,2,3,3] - (1,1) (2,2) (1,1) 2 0 0",
              .executed = 2592, .model = 2592, .bytes = 1440},
    OpExample{.op = "aten::miopen_convolution_relu",
              .call = "[1,4,6,6] [8,2,3,3] - (2,2) (1,1) (1,1) 2",
              .executed = 2592, .model = 2592, .bytes = 1440},
    OpExample{.op = "aten::miopen_convolution_add_relu",
              .call = "[1,4,6,6] [8,2,3,3] [1,8,3,3] - - (2,2) (1,1) (1,1) 2",
              .executed = 2592, .model = 2592, .bytes = 1440},
    OpExample{.op = "aten::miopen_convolution_transpose",
              .call = "[1,4,6,6] [4,4,3,3] - (1,1) (1,1) (2,2) (1,1) 2 0 0",
              .executed = 10368, .model = 10368, .bytes = 5760},
    OpExample{.op = "aten::mkldnn_convolution",
              .call = "[1,4,6,6] [8,2,3,3] - (1,1) (2,2) (1,1) 2",
              .executed = 2592, .model = 2592, .bytes = 1440},
    OpExample{.op = "aten::_mps_convolution",
              .call = "[1,4,6,6] [8,2,3,3] - (1,1) (2,2) (1,1) 2",
              .executed = 2592, .model = 2592, .bytes = 1440},
    OpExample{.op = "aten::_mps_convolution_transpose",
              .call = "[1,4,6,6] [4,4,3,3] (1,1) (1,1) (2,2) (1,1) 2",
              .executed = 10368, .model = 10368, .bytes = 5760},
    OpExample{.op = "aten::mps_convolution_backward",
              .call = "[1,4,6,6] [1,8,3,3] [8,2,3,3] (1,1) (2,2) (1,1) 2 (1,1,1)",
              .executed = 5184, .model = 5184, .bytes = 2880},
    OpExample{.op = "aten::mps_convolution_transpose_backward",
              .call = "[1,4,6,6] [1,8,12,12] [4,4,3,3] (1,1) (1,1) (2,2) (1,1) 2 (1,1)",
              .executed = 20736, .model = 20736, .bytes = 11520},
    // four groups of one channel: 4 x 3 x 3 weights, four output channels
    OpExample{.op = "aten::_conv_depthwise2d",
              .call = "[1,4,6,6] [4,1,3,3] (3,3) - (2,2) (1,1) (1,1)",
              .executed = 648, .model = 648, .bytes = 864},
    // kernels of 1 x 3 x 3 on one frame are the same
    OpExample{.op = "aten::conv_depthwise3d",
              .call = "[1,4,1,6,6] [4,1,1,3,3] (1,3,3) - (1,2,2) (0,1,1) (1,1,1)",
              .executed = 648, .model = 648, .bytes = 864},
    // no groups: 8 x 4 x 3 x 3 weights
    OpExample{.op = "aten::_nnpack_spatial_convolution",
              .call = "[1,4,6,6] [8,4,3,3] - (1,1) (2,2)",
              .executed = 5184, .model = 5184, .bytes = 2016},
    OpExample{.op = "mkldnn::_convolution_pointwise",
              .call = "[1,4,6,6] [8,2,3,3] - (1,1) (2,2) (1,1) 2 - - -",
              .executed = 2592, .model = 2592, .bytes = 1440},
    OpExample{.op = "mkldnn::_convolution_pointwise.binary",
              .call = "[1,4,6,6] [1,8,3,3] [8,2,3,3] - (1,1) (2,2) (1,1) 2 - - - - -",
              .executed = 2592, .model = 2592, .bytes = 1440},
    OpExample{.op = "mkldnn::_convolution_pointwise_.binary",
              .call = "[1,8,3,3] [1,4,6,6] [8,2,3,3] - (1,1) (2,2) (1,1) 2 - - - - -",
              .executed = 2592, .model = 2592, .bytes = 1440},
    OpExample{.op = "mkldnn::_convolution_transpose_pointwise",
              .call = "[1,4,6,6] [4,4,3,3] - (1,1) (1,1) (2,2) (1,1) 2 - - -",
              .executed = 10368, .model = 10368, .bytes = 5760},
    // one byte an element; weights with a dimension for the groups; one dimension of 36 has 18 outputs
    OpExample{.op = "onednn::qconv1d_pointwise",
              .call = "int8[1,4,36] - 0 int8[8,2,3] [8] [8] - (2) (1) (1) 2 - 0 - - - -",
              .executed = 1728, .model = 1728, .bytes = 336},
    OpExample{.op = "onednn::qconv2d_pointwise",
              .call = "int8[1,4,6,6] - 0 int8[2,4,2,3,3] [8] [8] - (2,2) (1,1) (1,1) 2 - 0 - - - -",
              .executed = 2592, .model = 2592, .bytes = 360},
    OpExample{.op = "onednn::qconv2d_pointwise.binary",
              .call = "int8[1,4,6,6] - 0 int8[8,2,3,3] [8] [8] int8[1,8,3,3] - (2,2) (1,1) (1,1) 2 - 0 - - 0 - - - - -",
              .executed = 2592, .model = 2592, .bytes = 360},
    OpExample{.op = "onednn::qconv2d_pointwise.binary_tensor",
              .call = "int8[1,4,6,6] [1] [1] int8[8,2,3,3] [8] [8] int8[1,8,3,3] - (2,2) (1,1) (1,1) 2 - 0 - - 0 - - - - -",
              .executed = 2592, .model = 2592, .bytes = 360},
    OpExample{.op = "onednn::qconv3d_pointwise",
              .call = "int8[1,4,1,6,6] - 0 int8[8,2,1,3,3] [8] [8] - (1,2,2) (0,1,1) (1,1,1) 2 - 0 - - - -",
              .executed = 2592, .model = 2592, .bytes = 360},
    OpExample{.op = "onednn::qconv_pointwise",
              .call = "int8[1,4,6,6] - 0 int8[8,2,3,3] [8] [8] - (2,2) (1,1) (1,1) 2 - 0 - - - -",
              .executed = 2592, .model = 2592, .bytes = 360},
};

}  // namespace

extern const OpFamily convolution_plugin;
constinit const OpFamily convolution_plugin{
    .name = "convolution",
    .help = "2 x batch x positions x weights; the gradients of input and weight each cost the same again",
    .source = "definition: each weight is one multiply-add at every output position (input position if transposed)",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
