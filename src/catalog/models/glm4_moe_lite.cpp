// SPDX-License-Identifier: Apache-2.0
//
// GLM-4.7-Flash: DeepSeek's latent attention under GLM's experts.
#include "../blocks/deepseek.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  return build_deepseek(config,
                        {.q_rank = 768,
                         .d_nope = 192,
                         .d_v = 256,
                         .moe_ffn = 1536,
                         .experts = 64,
                         .active = 4,
                         .shared = 1,
                         .first_dense = 1});
}

}  // namespace

extern constinit const ModelFamily model_glm4_moe_lite{
    .name = "glm4_moe_lite",
    .help = "GLM-4.7-Flash: latent attention, one dense layer, then routed and shared experts",
    .types = "glm4_moe_lite Glm4MoeLiteForCausalLM",
    .build = build,
    .random_config = {.grouped = false,
                      .latent = true,
                      .experts = RandomConfig::Experts::of_own_width,
                      .shared = RandomConfig::Shared::several,
                      .first_dense = true},
    // As DeepSeek-V3's example: two layers, the first dense; h = 8, n = 2, query rank 4, kv rank 4,
    // d_nope = 4, d_rope = 2, d_v = 4, V = 32, dense f = 16; 4 experts of f = 4, 2 active, 1
    // shared; s = 4. Attention 256 and norms of 8. Parameters: embedding and head 512; attention
    // 2*264; dense MLP 384; router 32, experts 4*96, shared 96; norms 5*8: 1976. Per token,
    // forward: 2*(2*256 + 384 + 32 + 2*96 + 96 + 256) = 2944; attention 800. Training: 3*(4*2944 +
    // 800).
    .example = {
        .config = R"({"model_type": "glm4_moe_lite", "hidden_size": 8, "num_hidden_layers": 2,
                             "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 32,
                             "q_lora_rank": 4, "kv_lora_rank": 4, "qk_nope_head_dim": 4,
                             "qk_rope_head_dim": 2, "v_head_dim": 4, "n_routed_experts": 4,
                             "num_experts_per_tok": 2, "n_shared_experts": 1,
                             "moe_intermediate_size": 4})",
        .parameters = 1976,
        .seq_len = 4,
        .training_flops = 37728}};

}  // namespace flopmeter
