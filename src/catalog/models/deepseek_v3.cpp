// SPDX-License-Identifier: Apache-2.0
//
// DeepSeek-V3 and Kimi K2: latent attention, shared and routed experts, multi-token prediction.
#include "../blocks/deepseek.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build_v3(const Config& config) {
  return build_deepseek(config,
                        {.moe_ffn = 2048,
                         .experts = 256,
                         .active = 8,
                         .shared = 1,
                         .first_dense = 3,
                         .predictions = 1,
                         .balanced = true});
}

}  // namespace

extern constinit const ModelFamily model_deepseek_v3{
    .name = "deepseek_v3",
    .help =
        "DeepSeek-V3, Kimi K2: latent attention, shared and routed experts, multi-token prediction",
    .types = "deepseek_v3 DeepseekV3ForCausalLM kimi_k2 KimiK2ForCausalLM",
    .build = build_v3,
    .random_config = {.grouped = false,
                      .latent = true,
                      .experts = RandomConfig::Experts::of_own_width,
                      .shared = RandomConfig::Shared::several,
                      .first_dense = true},
    // Two layers, the first dense; h = 8, n = 2, query rank 4, kv rank 4, d_nope = 4, d_rope = 2,
    // d_v = 4, V = 32, dense f = 16; 4 experts of f = 4, 2 active, 1 shared; s = 4.  The prediction
    // layer is excluded by default.
    // Attention: q 8*4 + 4*12 = 80, kv_a 48, kv_b 64, o 64: 256, and norms of 4 + 4.
    // Parameters: embedding and head 512; attention 2*264; dense MLP 384; router 32 and 4 that
    // balance it, experts 4*96, shared 96; norms 5*8: 1980.
    // Per token, forward: 2*(2*256 + 384 + 32 + 2*96 + 96 + 256) = 2944; attention 800.
    // Training: 3*(4*2944 + 800).
    .example = {.config = R"({"model_type": "deepseek_v3", "hidden_size": 8, "num_hidden_layers": 2,
                             "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 32,
                             "q_lora_rank": 4, "kv_lora_rank": 4, "qk_nope_head_dim": 4,
                             "qk_rope_head_dim": 2, "v_head_dim": 4, "n_routed_experts": 4,
                             "num_experts_per_tok": 2, "n_shared_experts": 1,
                             "moe_intermediate_size": 4, "first_k_dense_replace": 1,
                             "num_nextn_predict_layers": 1})",
                .parameters = 1980,
                .seq_len = 4,
                .training_flops = 37728}};

}  // namespace flopmeter
