// SPDX-License-Identifier: Apache-2.0
//
// DeepSeek-MoE, the first of them: plain attention, fine-grained and shared experts.
#include "../blocks/moe_block.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build_deepseek_moe(const Config& config) {
  SparseDecoder spec = read_sparse_decoder(config);
  AttentionBlock& attention = spec.base.attention;
  attention.qkv_bias = attention.out_bias = config.flag_or({"attention_bias"}, false);
  spec.moe.ffn = config.size_or({"moe_intermediate_size"}, 1407);
  read_experts(config, spec.moe, {"n_routed_experts"}, 64, 6);
  spec.moe.shared_ffn = product(config, spec.moe.ffn, config.count_or({"n_shared_experts"}, 0));
  const auto first = static_cast<std::size_t>(config.count_or({"first_k_dense_replace"}, 0));
  const auto step = static_cast<std::size_t>(config.size_or({"moe_layer_freq"}, 1));
  for (std::size_t i = 0; i < spec.sparse.size(); ++i) spec.sparse[i] = i >= first && i % step == 0;
  return build_sparse_decoder(config, spec);
}

}  // namespace

extern constinit const ModelFamily model_deepseek_moe{
    .name = "deepseek_moe",
    .help = "DeepSeek-MoE: plain attention, fine-grained and shared experts",
    .types = "deepseek DeepseekForCausalLM",
    .build = build_deepseek_moe,
    .random_config = {.experts = RandomConfig::Experts::of_own_width,
                      .shared = RandomConfig::Shared::several,
                      .first_dense = true},
    // Two layers, the first dense; h = 8, n = g = 2, d = 4, V = 32, dense f = 16; 4 experts of f =
    // 4, 2 active, 2 shared; s = 4. Parameters: embedding and head 512; attention 2*256; dense MLP
    // 384; router 32, experts 4*96, shared 192; norms 5*8: 2056. Per token, forward: 2*(512 + 384 +
    // 32 + 2*96 + 192 + 256) = 3136; attention 640. Training: 3*(4*3136 + 640).
    .example = {.config = R"({"model_type": "deepseek", "hidden_size": 8, "num_hidden_layers": 2,
                             "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 32,
                             "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 2,
                             "moe_intermediate_size": 4, "first_k_dense_replace": 1})",
                .parameters = 2056,
                .seq_len = 4,
                .training_flops = 39552}};

}  // namespace flopmeter
