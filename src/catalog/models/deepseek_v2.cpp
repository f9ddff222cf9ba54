// SPDX-License-Identifier: Apache-2.0
//
// DeepSeek-V2: latent attention, shared and routed experts.
#include "../blocks/deepseek.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build_v2(const Config& config) {
  return build_deepseek(config, {.moe_ffn = 1407, .experts = 64, .active = 6, .shared = 2});
}

}  // namespace

extern constinit const ModelFamily model_deepseek_v2{
    .name = "deepseek_v2",
    .help = "DeepSeek-V2: latent attention, shared and routed experts",
    .types = "deepseek_v2 DeepseekV2ForCausalLM",
    .build = build_v2,
    .random_config = {.grouped = false,
                      .latent = true,
                      .experts = RandomConfig::Experts::of_own_width,
                      .shared = RandomConfig::Shared::several,
                      .first_dense = true},
    // Two layers, the first dense; h = 8, n = 2, no query rank, kv rank 4, d_nope = 4, d_rope = 2,
    // d_v = 4, V = 32, dense f = 16; 4 experts of f = 4, 2 active, 1 shared; s = 4.
    // Attention: q 8*12 = 96, kv_a 8*6 = 48, kv_b 4*16 = 64, o 64: 272, and a norm of 4.
    // Parameters: embedding and head 512; attention 2*276; dense MLP 384; router 32, experts 4*96,
    // shared 96; norms 5*8: 2000.
    // Per token, forward: 2*(2*272 + 384 + 32 + 2*96 + 96 + 256) = 3008; attention 2 layers x 10
    // pairs x 2 heads x 2*(6+4) = 800. Training: 3*(4*3008 + 800).
    .example = {.config = R"({"model_type": "deepseek_v2", "hidden_size": 8, "num_hidden_layers": 2,
                             "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 32,
                             "q_lora_rank": null, "kv_lora_rank": 4, "qk_nope_head_dim": 4,
                             "qk_rope_head_dim": 2, "v_head_dim": 4, "n_routed_experts": 4,
                             "num_experts_per_tok": 2, "n_shared_experts": 1,
                             "moe_intermediate_size": 4, "first_k_dense_replace": 1})",
                .parameters = 2000,
                .seq_len = 4,
                .training_flops = 38496}};

}  // namespace flopmeter
