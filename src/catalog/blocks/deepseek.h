// SPDX-License-Identifier: Apache-2.0
//
// What DeepSeek-V2, V3 and Kimi share: attention through a low-rank latent (MLA), shared and routed
// experts, layers that predict a further token.  Private to the catalog.
#pragma once

#include "moe_block.h"

#include <functional>

namespace flopmeter {

/// Multi-head latent attention.
struct LatentAttention {
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t q_rank = 0;  ///< 0: queries are projected at once
  std::int64_t kv_rank = 0;
  std::int64_t d_nope = 0;
  std::int64_t d_rope = 0;
  std::int64_t d_v = 0;
  bool bias = false;
};

Value latent_attention(LayerBuilder& layer, Value x, const LatentAttention& spec);

/// Layers that each predict one more token: norms of the hidden state and of the next
/// token's embedding, both projected to one, a decoder layer, norm, and the shared head
/// (DeepSeek-V3, arXiv 2412.19437, 2.2).
void add_predictions(ModelBuilder& builder,
                     std::int64_t first,
                     std::int64_t count,
                     const DecoderFrame& frame,
                     const std::function<Value(LayerBuilder&, Value)>& decoder_layer);

/// What the configuration classes take for a key that is left out.
struct DeepseekDefaults {
  std::int64_t q_rank = 1536;
  std::int64_t d_nope = 128;
  std::int64_t d_v = 128;
  std::int64_t moe_ffn = 0;
  std::int64_t experts = 0;
  std::int64_t active = 0;
  std::int64_t shared = 0;
  std::int64_t first_dense = 0;
  std::int64_t predictions = 0;  ///< multi-token prediction layers
  bool balanced = false;         ///< a number an expert balances the routing
};

Model build_deepseek(const Config& config, const DeepseekDefaults& defaults);

}  // namespace flopmeter
