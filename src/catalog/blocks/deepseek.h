// SPDX-License-Identifier: Apache-2.0
//
// Parts of DeepSeek-V2, V3, and Kimi: multi-head latent attention (MLA), shared and routed experts,
// multi-token prediction layers.  Private to the catalog.
#pragma once

#include "moe_block.h"

#include <functional>

namespace flopmeter {

/// Multi-head latent attention.
struct LatentAttention {
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t q_rank = 0;  ///< 0: queries are projected directly
  std::int64_t kv_rank = 0;
  std::int64_t d_nope = 0;
  std::int64_t d_rope = 0;
  std::int64_t d_v = 0;
  bool bias = false;
};

Value latent_attention(LayerBuilder& layer, Value x, const LatentAttention& spec);

/// Layers that each predict one more token: norms of the hidden state and of the next token's
/// embedding, a projection of both, a decoder layer, a norm, and the shared head
/// (DeepSeek-V3, arXiv 2412.19437, 2.2).
void add_predictions(ModelBuilder& builder,
                     std::int64_t first,
                     std::int64_t count,
                     const DecoderFrame& frame,
                     const std::function<Value(LayerBuilder&, Value)>& decoder_layer);

/// Defaults of the configuration classes.
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
  bool balanced = false;         ///< a bias per expert balances the routing
};

Model build_deepseek(const Config& config, const DeepseekDefaults& defaults);

}  // namespace flopmeter
