// SPDX-License-Identifier: Apache-2.0
//
// Fused scaled-dot-product attention of the dispatcher: queries, keys and values are [batch, heads,
// length, size].
//
// is_causal of a call with fewer queries than keys starts at the first key, as the documentation of
// scaled_dot_product_attention says and its CPU kernel does; the flash operator starts so that the
// last query sees the last key (torch.nn.attention.bias, CausalVariant.LOWER_RIGHT).
#include "attention_cost.h"

#include <array>

namespace flopmeter {
namespace {

using Shape = MaskPairs::Shape;

/// Where an operator has its arguments.
struct Places {
  int query = 0;  ///< key and value follow
  int causal = -1;
  int mask = -1;
  Shape causal_shape = Shape::causal;
  AttentionPass pass = AttentionPass::forward;
};

template <Places at>
std::optional<OpCost> price(const OpCall& call) {
  const Arg q = call.arg(at.query);
  const Arg k = call.arg(at.query + 1);
  const Arg v = call.arg(at.query + 2);
  if (!q.is_tensor(4) || !k.is_tensor(4) || !v.is_tensor(4)) return std::nullopt;
  const bool causal = at.causal >= 0 && call.arg(at.causal).number_or(0) != 0;
  // A mask tensor hides which pairs count: all are computed.  An undefined one has no elements.
  const Arg mask = at.mask >= 0 ? call.arg(at.mask) : Arg{};
  const bool masked = mask.is_tensor() && mask.rank > 0 && mask.elements() > 0;
  const Shape shape = causal ? at.causal_shape : Shape::full;
  const Attention op{.pairs = q[0] * mask_pairs({.shape = shape}, q[2], k[2]),
                     .heads = q[1],
                     .kv_heads = k[1],
                     .d_qk = q[3],
                     .d_v = v[3],
                     .queries = WideInt{q[0]} * q[2],
                     .keys = WideInt{k[0]} * k[2]};
  return attention_cost(op, at.pass, q, masked ? AttentionPairs::full : AttentionPairs::exact);
}

constexpr auto backward = AttentionPass::backward;

constexpr std::array rules = {
    OpRule{.name = "aten::_scaled_dot_product_flash_attention",
           .price = price<Places{.causal = 4, .causal_shape = Shape::causal_bottom_right}>},
    OpRule{.name = "aten::_scaled_dot_product_flash_attention.quantized",
           .price = price<Places{.causal = 7, .causal_shape = Shape::causal_bottom_right}>},
    OpRule{.name = "aten::_scaled_dot_product_flash_attention_backward",
           .price = price<Places{.query = 1,
                                 .causal = 11,
                                 .causal_shape = Shape::causal_bottom_right,
                                 .pass = backward}>,
           .dtype_argument = 1},
    OpRule{.name = "aten::_scaled_dot_product_flash_attention_for_cpu",
           .price = price<Places{.causal = 4, .mask = 5}>},
    OpRule{.name = "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
           .price = price<Places{.query = 1, .causal = 7, .mask = 8, .pass = backward}>,
           .dtype_argument = 1},
    OpRule{.name = "aten::_scaled_dot_product_efficient_attention",
           .price = price<Places{.causal = 6, .mask = 3}>},
    OpRule{.name = "aten::_scaled_dot_product_efficient_attention_backward",
           .price = price<Places{.query = 1, .causal = 11, .mask = 4, .pass = backward}>,
           .dtype_argument = 1},
    OpRule{.name = "aten::_scaled_dot_product_cudnn_attention",
           .price = price<Places{.causal = 6, .mask = 3}>},
    OpRule{.name = "aten::_scaled_dot_product_cudnn_attention_backward",
           .price = price<Places{.query = 1, .causal = 14, .mask = 8, .pass = backward}>,
           .dtype_argument = 1},
    OpRule{.name = "aten::_scaled_dot_product_fused_attention_overrideable",
           .price = price<Places{.causal = 5, .mask = 3}>},
    OpRule{.name = "aten::_scaled_dot_product_fused_attention_overrideable_backward",
           .price = price<Places{.query = 1, .causal = 13, .mask = 4, .pass = backward}>,
           .dtype_argument = 1},
    OpRule{.name = "aten::_scaled_dot_product_attention_math_for_mps",
           .price = price<Places{.causal = 5, .mask = 3}>},
    OpRule{.name = "aten::_triton_scaled_dot_attention", .price = price<Places{}>},
    OpRule{.name = "aten::scaled_dot_product_attention",
           .price = price<Places{.causal = 5, .mask = 3}>,
           .offline = true},
};

constexpr auto exact = AttentionPairs::exact;

constexpr std::array examples = {
    // causal 3 x 3: 6 pairs; 6 * 2 sequences * 4 heads * (2 * 8 + 2 * 8) = 1536
    // q, o: 2*3 tokens * 4 heads * 16; k, v: 6 tokens * 2 heads * 16; 576 elements of 2 bytes
    OpExample{.op = "aten::_scaled_dot_product_flash_attention",
              .call = "bf16[2,4,3,8] bf16[2,2,3,8] bf16[2,2,3,8] - 1",
              .executed = 1536,
              .model = 1536,
              .bytes = 1152,
              .pairs = exact},
};

}  // namespace

extern const OpFamily attention_plugin;
constinit const OpFamily attention_plugin{
    .name = "attention",
    .help =
        "P pairs, n query heads: 2 P n (d_qk + d_v) forward; backward twice that, fused kernels 2 "
        "P n (3 d_qk + 2 d_v)",
    .source =
        "FlashAttention-2, arXiv 2307.08691, sections 3.1 and 4.1; "
        "torch.nn.functional.scaled_dot_product_attention",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
