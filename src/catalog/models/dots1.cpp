// SPDX-License-Identifier: Apache-2.0
//
// dots.llm1: normalized queries and keys, dense layers first, then routed and shared experts.
#include "../blocks/moe_block.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

bool from_layer(std::int64_t layer, std::int64_t first) {
  return layer >= first;
}

Model build(const Config& config) {
  SparseDecoder spec = read_sparse_decoder(config, {.kv_heads = 32});
  AttentionBlock& attention = spec.base.attention;
  attention.qkv_bias = attention.out_bias = config.flag_or({"attention_bias"}, false);
  attention.q_norm = "self_attn.q_norm";
  attention.k_norm = "self_attn.k_norm";
  if (!config.is_null("sliding_window")) {
    spec.base.window = config.size_or({"sliding_window"}, 4096);
    const std::int64_t first = config.count_or({"max_window_layers"}, 62);
    spec.base.windowed = read_windowed(config, spec.base.layers, from_layer, first);
  }
  spec.moe.ffn = config.size_or({"moe_intermediate_size"}, 1408);
  spec.moe.shared_ffn = product(config, spec.moe.ffn, config.count_or({"n_shared_experts"}, 0));
  const std::int64_t experts = config.size({"n_routed_experts", "num_local_experts"});
  const std::int64_t active = config.size({"num_experts_per_tok"});
  read_experts(config, spec.moe, {"n_routed_experts", "num_local_experts"}, experts, active);
  const std::int64_t dense = config.count_or({"first_k_dense_replace"}, 0);
  for (std::size_t i = 0; i < spec.sparse.size(); ++i)
    spec.sparse[i] = static_cast<std::int64_t>(i) >= dense;
  return build_sparse_decoder(config, spec);
}

}  // namespace

extern constinit const ModelFamily model_dots1{
    .name = "dots1",
    .help = "dots.llm1: dense layers first, then routed and shared experts",
    .types = "dots1 Dots1ForCausalLM",
    .build = build,
    .random_config = {.experts = RandomConfig::Experts::of_own_width,
                      .shared = RandomConfig::Shared::several,
                      .first_dense = true,
                      .keys = R"("sliding_window": null)"},
    // One layer, h = 8, n = 2, g = 1, d = 4, V = 32, 4 experts of f = 4 and 2 active, two shared, s
    // = 4. Parameters: embedding and head 512; q, o 64 each; k, v 32 each; norms of queries and
    // keys 8; router 32; experts 4*96; shared 192; norms 24: 1344. Per token, forward: 2*(192 + 32
    // + 2*96 + 192 + 256) = 1728; attention 10 pairs x 2 heads x 2*(4+4) = 320. Training: 3*(4*1728
    // + 320).
    .example = {.config = R"({"model_type": "dots1", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "vocab_size": 32, "n_routed_experts": 4,
                             "num_experts_per_tok": 2, "n_shared_experts": 2,
                             "moe_intermediate_size": 4})",
                .parameters = 1344,
                .seq_len = 4,
                .training_flops = 21696}};

}  // namespace flopmeter
