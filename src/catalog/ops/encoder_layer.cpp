// SPDX-License-Identifier: Apache-2.0
//
// Whole transformer layers that torch runs as one operator in inference: projections, full
// attention, and the feed-forward layer.
#include "matmul_cost.h"

#include <array>

namespace flopmeter {
namespace {

/// Attention of every query with every key; `tokens` are [batch, length, width].
std::optional<OpCost> attention(const Arg& queries,
                                const Arg& keys,
                                std::int64_t heads,
                                const Arg& mask) {
  if (!queries.is_tensor(3) || !keys.is_tensor(3) || heads <= 0) return std::nullopt;
  const Attention op{
      .pairs = queries[0] * mask_pairs({.shape = MaskPairs::Shape::full}, queries[1], keys[1]),
      .heads = heads,
      .kv_heads = heads,
      .d_qk = queries[2] / heads,
      .d_v = queries[2] / heads,
      .queries = WideInt{queries[0]} * queries[1],
      .keys = WideInt{keys[0]} * keys[1]};
  return OpCost{.executed = flops(op),
                .model = flops(op),
                .bytes = bytes_moved(op, queries.dtype),
                .pairs = mask.is_tensor() ? AttentionPairs::full : AttentionPairs::exact};
}

/// Adds a linear layer of `outputs` x `inputs` weights on `tokens` rows.
void add_linear(OpCost& sum, WideInt tokens, WideInt outputs, WideInt inputs, const Arg& like) {
  const OpCost cost = matmul_cost({.m = tokens, .n = outputs, .k = inputs}, like);
  sum.executed += cost.executed;
  sum.model += cost.model;
  sum.bytes += cost.bytes;
}

/// query, key, value, width, heads, projections of all three [3 width, width], bias, output
/// projection, bias, mask.
std::optional<OpCost> multi_head_attention(const OpCall& call) {
  const Arg query = call.arg(0);
  const Arg key = call.arg(1);
  std::optional<OpCost> cost = attention(query, key, call.arg(4).number_or(0), call.arg(9));
  if (!cost) return std::nullopt;
  const WideInt width = query[2];
  const WideInt queries = WideInt{query[0]} * query[1];
  const WideInt keys = WideInt{key[0]} * key[1];
  add_linear(*cost, queries, width, width, query);
  add_linear(*cost, keys, 2 * width, width, query);
  add_linear(*cost, queries, width, width, query);
  return cost;
}

/// src, width, heads, …; weights of projections at 3 and 5, of the feed-forward layer at 14 and 16;
/// mask at 18.
std::optional<OpCost> encoder_layer(const OpCall& call) {
  const Arg src = call.arg(0);
  std::optional<OpCost> cost = attention(src, src, call.arg(2).number_or(0), call.arg(18));
  if (!cost) return std::nullopt;
  for (const int place : {3, 5, 14, 16}) {
    const Arg weight = call.arg(place);
    if (!weight.is_tensor(2)) return std::nullopt;
    add_linear(*cost, WideInt{src[0]} * src[1], weight[0], weight[1], src);
  }
  return cost;
}

constexpr std::array rules = {
    OpRule{.name = "aten::_native_multi_head_attention", .flop_cost = multi_head_attention},
    OpRule{.name = "aten::_triton_multi_head_attention", .flop_cost = multi_head_attention},
    OpRule{.name = "aten::_transformer_encoder_layer_fwd", .flop_cost = encoder_layer},
};

// Two sequences of three, width 8, two heads.
//
// Attention: 2 * 9 pairs of 2 * 2 * (4 + 4) = 32 FLOPs; 2 * 6 * 2 * 8 elements.
// Projections: 2 * 6 * 4 * 64 FLOPs; elements of q 160, of k and v 272, of the output 160; of q, k
// and v at once 384.  Feed-forward of 16: 2 * 6 * 2 * 128 FLOPs; 2 * 272 elements.
constexpr std::array examples = {
    op_example("aten::_native_multi_head_attention",
               "[2,3,8] [2,3,8] [2,3,8] 8 2 [24,8] [24] [8,8] [8] - 0 1 -",
               3648,
               3136,
               AttentionPairs::exact),
    op_example("aten::_triton_multi_head_attention",
               "[2,3,8] [2,3,8] [2,3,8] 8 2 [24,8] [24] [8,8] [8] [2,3]",
               3648,
               3136,
               AttentionPairs::full),
    op_example("aten::_transformer_encoder_layer_fwd",
               "[2,3,8] 8 2 [24,8] [24] [8,8] [8] 1 0 - [8] [8] [8] [8] [16,8] [16] [8,16] [8] - -",
               6720,
               5120,
               AttentionPairs::exact),
};

}  // namespace

extern constinit const OpFamily op_encoder_layer{
    .name = "encoder_layer",
    .help = "the sum of its linear layers and of attention over all pairs",
    .source = "torch.nn.TransformerEncoderLayer, its path for inference",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
