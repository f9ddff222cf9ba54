// SPDX-License-Identifier: Apache-2.0
//
// Qwen3-MoE: normalized queries and keys, experts in all layers or in some, none shared.
#include "../blocks/moe_block.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build_qwen3_moe(const Config& config) {
  SparseDecoder spec = read_sparse_decoder(config, {.kv_heads = 4});
  AttentionBlock& attention = spec.base.attention;
  attention.qkv_bias = attention.out_bias = config.flag_or({"attention_bias"}, false);
  attention.q_norm = "self_attn.q_norm";
  attention.k_norm = "self_attn.k_norm";
  spec.moe.ffn = config.size_or({"moe_intermediate_size"}, 768);
  read_experts(config, spec.moe, {"num_experts", "num_local_experts"}, 128, 8);
  read_sparse_layers(config, spec);
  if (config.flag_or({"use_sliding_window"}, false))
    spec.base.window = config.count_or({"sliding_window"}, 4096);
  return build_sparse_decoder(config, spec);
}

}  // namespace

extern constinit const ModelFamily model_qwen3_moe{
    .name = "qwen3_moe",
    .help = "Qwen3-MoE: normalized queries and keys, experts, none shared",
    .types = "qwen3_moe Qwen3MoeForCausalLM",
    .build = build_qwen3_moe,
    .random_config = {.experts = RandomConfig::Experts::of_own_width},
    // One layer, h = 8, n = 2, g = 1, d = 8, V = 32, 4 experts of f = 4 and 2 active, s = 4.
    // Parameters: embedding and head 512; q, o 128 each; k, v 64 each; qk norms 16; router 32;
    // experts 4*96; norms 24: 1352.
    // Per token, forward: 2*(384 + 32 + 2*96 + 256) = 1728; attention 10 pairs x 2 heads x 2*(8+8)
    // = 640. Training: 3*(4*1728 + 640).
    .example = {.config = R"({"model_type": "qwen3_moe", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
                             "intermediate_size": 16, "vocab_size": 32, "num_experts": 4, "num_experts_per_tok": 2,
                             "moe_intermediate_size": 4})",
                .parameters = 1352,
                .seq_len = 4,
                .training_flops = 22656}};

}  // namespace flopmeter
