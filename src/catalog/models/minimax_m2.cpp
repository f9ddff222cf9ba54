// SPDX-License-Identifier: Apache-2.0
//
// MiniMax-M2: many small experts, norms over all queries and keys.
#include "../blocks/moe_block.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  SparseDecoder spec = read_sparse_decoder(config, {.kv_heads = 8, .head_dim = 128});
  AttentionBlock& attention = spec.base.attention;
  attention.q_norm = "self_attn.q_norm";
  attention.k_norm = "self_attn.k_norm";
  attention.norm_whole_width = true;
  spec.moe.ffn = spec.base.mlp.ffn;
  read_experts(config, spec.moe, {"num_local_experts", "num_experts"}, 256, 8);
  return build_sparse_decoder(config, spec);
}

}  // namespace

extern constinit const ModelFamily model_minimax_m2{
    .name = "minimax_m2",
    .help = "MiniMax-M2: many small experts, normalized queries and keys",
    .types = "minimax_m2 MiniMaxM2ForCausalLM",
    .build = build,
    .random_config = {.experts = RandomConfig::Experts::of_mlp_width},
    // One layer, h = 8, n = 2, g = 1, d = 4, V = 32, 4 experts of f = 16 and 2 active, s = 4.
    // Parameters: embedding and head 512; q, o 64 each; k, v 32 each; norms of queries and keys 8 +
    // 4; router 32; experts 4*384; norms 24: 2308. Per token, forward: 2*(192 + 32 + 2*384 + 256) =
    // 2496; attention 10 pairs x 2 heads x 2*(4+4) = 320. Training: 3*(4*2496 + 320).
    .example = {.config = R"({"model_type": "minimax_m2", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "vocab_size": 32,
                             "num_experts_per_tok": 2, "num_local_experts": 4, "head_dim": 4})",
                .parameters = 2308,
                .seq_len = 4,
                .training_flops = 30912}};

}  // namespace flopmeter
