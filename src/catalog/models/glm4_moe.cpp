// SPDX-License-Identifier: Apache-2.0
//
// GLM-4.5, 4.6 and 4.7: grouped keys, dense layers first, then experts with a shared one; a further
// layer predicts one more token and is not part of what transformers builds.
#include "../blocks/moe_block.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  SparseDecoder spec = read_sparse_decoder(config, {.kv_heads = 8});
  AttentionBlock& attention = spec.base.attention;
  attention.qkv_bias = config.flag_or({"attention_bias"}, false);
  if (config.flag_or({"use_qk_norm"}, false)) {
    attention.q_norm = "self_attn.q_norm";
    attention.k_norm = "self_attn.k_norm";
  }
  spec.moe.ffn = config.size_or({"moe_intermediate_size"}, 1408);
  spec.moe.shared_ffn = product(config, spec.moe.ffn, config.count_or({"n_shared_experts"}, 1));
  read_experts(config, spec.moe, {"n_routed_experts", "num_local_experts"}, 128, 8);
  const std::int64_t dense = config.count_or({"first_k_dense_replace"}, 1);
  for (std::size_t i = 0; i < spec.sparse.size(); ++i)
    spec.sparse[i] = static_cast<std::int64_t>(i) >= dense;
  return build_sparse_decoder(config, spec);
}

}  // namespace

extern constinit const ModelFamily model_glm4_moe{
    .name = "glm4_moe",
    .help = "GLM-4.5 to 4.7: dense layers first, then routed and shared experts",
    .types = "glm4_moe Glm4MoeForCausalLM",
    .build = build,
    .random_config = {.experts = RandomConfig::Experts::of_own_width,
                      .shared = RandomConfig::Shared::several,
                      .first_dense = true},
    // One layer, h = 8, n = 2, g = 1, d = 4, V = 32, 4 experts of f = 4 and 2 active, one shared, s
    // = 4. Parameters: embedding and head 512; q, o 64 each; k, v 32 each; router 32; experts 4*96;
    // shared 96; norms 24: 1240. Per token, forward: 2*(192 + 32 + 2*96 + 96 + 256) = 1536;
    // attention 10 pairs x 2 heads x 2*(4+4) = 320. Training: 3*(4*1536 + 320).
    .example = {.config = R"({"model_type": "glm4_moe", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "vocab_size": 32, "first_k_dense_replace": 0,
                             "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 4})",
                .parameters = 1240,
                .seq_len = 4,
                .training_flops = 19392}};

}  // namespace flopmeter
