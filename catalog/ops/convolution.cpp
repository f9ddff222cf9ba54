// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of any number of spatial dimensions, and their gradients, under all the names that
// back ends give them.  Counted as the direct algorithm does it, padding included, whatever the
// library chose to run.
#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/catalog/operations.h>

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
  int mask = never;  ///< of a gradient: which of input, weight and bias are wanted
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
    const std::int64_t out =
        transposed ? (in - 1) * stride + reach - padding + element(call, at.output_padding, i, 0)
                   : (in + padding < reach ? 0 : (in + padding - reach) / stride + 1);
    input_positions *= in;
    output_positions *= out;
    kernel *= taps;
  }
  if (x[1] <= 0) return std::nullopt;
  const WideInt groups = at.groups >= 0 ? call.arg(at.groups).number_or(1) : 1;
  const WideInt output_channels = w.elements() * groups / (x[1] * kernel);
  const Convolution op{.batch = x[0],
                       .positions = transposed ? input_positions : output_positions,
                       .weights = w.elements()};

  WideInt times = 1;
  if (at.mask >= 0) {
    const Arg mask = call.arg(at.mask);
    if (!mask.is_list() || mask.rank < 2) return std::nullopt;
    times = (mask[0] != 0 ? 1 : 0) + (mask[1] != 0 ? 1 : 0);
  }
  const Flops work = times * (x.complex ? 4 : 1) * flops(op);
  const WideInt elements = x.elements() + w.elements() + x[0] * output_channels * output_positions;
  return OpCost{.executed = work, .model = work, .bytes = {times * elements * x.bits() / 8}};
}

constexpr Places padding_first{.stride = 3, .padding = 2, .dilation = 4, .groups = 5};
constexpr Places bias_padding_first{.stride = 4, .padding = 3, .dilation = 5, .groups = 6};

constexpr std::array rules = {
    OpRule{.name = "aten::convolution", .price = price<standard>},
    OpRule{.name = "aten::_convolution", .price = price<standard>},
    OpRule{.name = "aten::convolution_overrideable", .price = price<standard>},
    OpRule{.name = "aten::convolution_backward",
           .price = price<Places{.input = 1,
                                 .weight = 2,
                                 .stride = 4,
                                 .padding = 5,
                                 .dilation = 6,
                                 .groups = 9,
                                 .transposed = 7,
                                 .output_padding = 8,
                                 .mask = 10}>,
           .dtype_argument = 1},
    OpRule{.name = "aten::convolution_backward_overrideable",
           .price = price<Places{.input = 1,
                                 .weight = 2,
                                 .stride = 3,
                                 .padding = 4,
                                 .dilation = 5,
                                 .groups = 8,
                                 .transposed = 6,
                                 .output_padding = 7,
                                 .mask = 9}>,
           .dtype_argument = 1},
    OpRule{.name = "aten::cudnn_convolution", .price = price<padding_first>},
    OpRule{.name = "aten::mkldnn_convolution", .price = price<bias_padding_first>},
    OpRule{.name = "aten::miopen_convolution", .price = price<bias_padding_first>},
};

constexpr std::array examples = {
    // 2 images, 5 x 5 outputs, 4 x 3 x 3 x 3 weights: 2 * 2 * 25 * 108
    OpExample{.op = "aten::convolution",
              .call = "[2,3,5,5] [4,3,3,3] - (1,1) (1,1) (1,1) 0 (0,0) 1",
              .executed = 10800,
              .model = 10800,
              .bytes = 1832},
};

}  // namespace

extern const OpFamily convolution_plugin;
constinit const OpFamily convolution_plugin{
    .name = "convolution",
    .help =
        "2 x batch x positions x weights; the gradients of input and weight each cost the same "
        "again",
    .source =
        "definition: each weight is one multiply-add at every output position (input position if "
        "transposed)",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
