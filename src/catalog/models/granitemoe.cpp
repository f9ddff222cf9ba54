// SPDX-License-Identifier: Apache-2.0
//
// Granite with experts, shared or not: multipliers scale values and cost nothing.
#include "../blocks/moe_block.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  SparseDecoder spec = read_sparse_decoder(config);
  const bool bias = config.flag_or({"attention_bias"}, false);
  spec.base.attention.qkv_bias = spec.base.attention.out_bias = bias;
  spec.moe.ffn = spec.base.mlp.ffn;
  spec.moe.router = "block_sparse_moe.router";
  spec.moe.gate_up = "block_sparse_moe.experts.gate_up_proj";
  spec.moe.down = "block_sparse_moe.experts.down_proj";
  spec.moe.shared_ffn = config.count_or({"shared_intermediate_size"}, 0);
  spec.moe.shared_gate_proj = "";
  spec.moe.shared_up_proj = "shared_mlp.input_linear";
  spec.moe.shared_down_proj = "shared_mlp.output_linear";
  read_experts(config, spec.moe, {"num_local_experts"}, 8, 2);
  return build_sparse_decoder(config, spec);
}

}  // namespace

extern constinit const ModelFamily model_granitemoe{
    .name = "granitemoe",
    .help = "Granite with experts in every layer",
    .types = "granitemoe GraniteMoeForCausalLM granitemoeshared GraniteMoeSharedForCausalLM",
    .build = build,
    .random_config = {.experts = RandomConfig::Experts::of_mlp_width},
    // One layer, h = 8, n = 2, g = 1, d = 4, V = 32, 4 experts of f = 16 and 2 active, s = 4.
    // Parameters: embedding and head 512; q, o 64 each; k, v 32 each; router 32; experts 4*384;
    // norms 24: 2296. Per token, forward: 2*(192 + 32 + 2*384 + 256) = 2496; attention 10 pairs x 2
    // heads x 2*(4+4) = 320. Training: 3*(4*2496 + 320).
    .example = {.config = R"({"model_type": "granitemoe", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "vocab_size": 32,
                             "num_experts_per_tok": 2, "num_local_experts": 4})",
                .parameters = 2296,
                .seq_len = 4,
                .training_flops = 30912}};

}  // namespace flopmeter
