// SPDX-License-Identifier: Apache-2.0
//
// Phi 3.5 MoE: Mixtral with LayerNorm, and biases in attention and head if the file sets them.
#include "../blocks/moe_block.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  SparseDecoder spec = read_sparse_decoder(config, {.kv_heads = 8});
  const bool bias = config.flag_or({"attention_bias"}, false);
  spec.base.attention.qkv_bias = spec.base.attention.out_bias = bias;
  spec.base.frame.norm_bias = true;
  spec.base.frame.head_bias = config.flag_or({"lm_head_bias"}, false);
  spec.base.window = config.count_or({"sliding_window"}, 0);
  spec.moe.ffn = spec.base.mlp.ffn;
  spec.moe.router = "mlp.router";
  read_experts(config, spec.moe, {"num_local_experts"}, 16, 2);
  return build_sparse_decoder(config, spec);
}

}  // namespace

extern constinit const ModelFamily model_phimoe{
    .name = "phimoe",
    .help = "Phi 3.5 MoE: LayerNorm, grouped keys, experts in every layer",
    .types = "phimoe PhimoeForCausalLM PhiMoEForCausalLM",
    .build = build,
    .random_config = {.experts = RandomConfig::Experts::of_mlp_width},
    // One layer, h = 8, n = 2, g = 1, d = 4, V = 32, 4 experts of f = 16 and 2 active, s = 4.
    // Parameters: embedding and head 512 + 32; q, o 64 + 8 each; k, v 32 + 4 each; router 32;
    // experts 4*384; norms 3*16: 2376. Per token, forward: 2*(192 + 32 + 2*384 + 256) = 2496;
    // attention 10 pairs x 2 heads x 2*(4+4) = 320. Training: 3*(4*2496 + 320).
    .example = {.config = R"({"model_type": "phimoe", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "vocab_size": 32, "attention_bias": true,
                             "lm_head_bias": true, "num_experts_per_tok": 2,
                             "num_local_experts": 4})",
                .parameters = 2376,
                .seq_len = 4,
                .training_flops = 30912}};

}  // namespace flopmeter
