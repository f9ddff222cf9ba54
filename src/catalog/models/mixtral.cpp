// SPDX-License-Identifier: Apache-2.0
//
// Mixtral: Mistral's attention, and experts in every layer.
#include "../blocks/moe_block.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build_mixtral(const Config& config) {
  SparseDecoder spec = read_sparse_decoder(config, {.kv_heads = 8});
  spec.moe.ffn = spec.base.mlp.ffn;
  read_experts(config, spec.moe, {"num_local_experts", "num_experts"}, 8, 2);
  spec.base.window = config.count_or({"sliding_window"}, 0);
  return build_sparse_decoder(config, spec);
}

}  // namespace

extern constinit const ModelFamily model_mixtral{
    .name = "mixtral",
    .help = "Mixtral: grouped keys, experts in every layer",
    .types = "mixtral MixtralForCausalLM",
    .build = build_mixtral,
    .random_config = {.experts = RandomConfig::Experts::of_mlp_width},
    // One layer, h = 8, n = 2, g = 1, d = 4, V = 32, 4 experts of f = 16 and 2 of them active, s
    // = 4. Parameters: embedding and head 2*256; q, o 64 each; k, v 32 each; router 32; experts
    // 4*3*128; norms 3*8: 2296.
    // Per token, forward: 2*(192 + 32 + 2*384 + 256) = 2496; attention 10 pairs x 2 heads x 2*(4+4)
    // = 320. Training: 3*(4*2496 + 320).
    .example = {.config = R"({"model_type": "mixtral", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 16,
                             "vocab_size": 32, "num_local_experts": 4, "num_experts_per_tok": 2})",
                .parameters = 2296,
                .seq_len = 4,
                .training_flops = 30912}};

}  // namespace flopmeter
