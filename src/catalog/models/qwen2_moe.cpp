// SPDX-License-Identifier: Apache-2.0
//
// Qwen1.5-MoE and Qwen2-MoE: experts and a gated shared expert, in all layers or in some.
#include "../blocks/moe_block.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

bool is_even_below(std::int64_t layer, std::int64_t below) {
  return layer % 2 == 0 && layer < below;
}

Model build_qwen2_moe(const Config& config) {
  SparseDecoder spec = read_sparse_decoder(config, {.kv_heads = 16});
  Decoder& base = spec.base;
  base.attention.qkv_bias = config.flag_or({"qkv_bias"}, true);
  spec.moe.ffn = config.size_or({"moe_intermediate_size"}, 1408);
  read_experts(config, spec.moe, {"num_experts", "num_local_experts"}, 60, 4);
  spec.moe.shared_ffn = config.size_or({"shared_expert_intermediate_size"}, 5632);
  spec.moe.shared_gate_proj = "mlp.shared_expert.gate_proj";
  spec.moe.shared_up_proj = "mlp.shared_expert.up_proj";
  spec.moe.shared_down_proj = "mlp.shared_expert.down_proj";
  spec.moe.shared_gate = "mlp.shared_expert_gate";
  read_sparse_layers(config, spec);
  if (config.flag_or({"use_sliding_window"}, false)) {
    base.window = config.count_or({"sliding_window"}, 4096);
    const std::int64_t below = config.count_or({"max_window_layers"}, 28);
    base.windowed = read_windowed(config, base.layers, is_even_below, below);
  }
  return build_sparse_decoder(config, spec);
}

}  // namespace

extern constinit const ModelFamily model_qwen2_moe{
    .name = "qwen2_moe",
    .help = "Qwen1.5-MoE, Qwen2-MoE: experts and a gated shared expert",
    .types = "qwen2_moe Qwen2MoeForCausalLM",
    .build = build_qwen2_moe,
    .random_config = {.experts = RandomConfig::Experts::of_own_width,
                      .shared = RandomConfig::Shared::of_own_width},
    // Two layers, the first dense; h = 8, n = g = 2, d = 4, V = 32, dense f = 16; 4 experts of f =
    // 4, 2 active, shared f = 8; s = 4. Parameters: embedding and head 512; attention 2*(4*64 + 24
    // bias); dense MLP 384; router 32, experts 4*96, shared 192, shared gate 8; norms 5*8: 2112.
    // Per token, forward: 2*(2*256 + 384 + 32 + 2*96 + 192 + 8 + 256) = 3152; attention 2 layers x
    // 10 pairs x 2 heads x 16 = 640. Training: 3*(4*3152 + 640).
    .example = {.config = R"({"model_type": "qwen2_moe", "hidden_size": 8, "num_hidden_layers": 2,
                             "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 16,
                             "vocab_size": 32, "num_experts": 4, "num_experts_per_tok": 2,
                             "moe_intermediate_size": 4, "shared_expert_intermediate_size": 8,
                             "mlp_only_layers": [0]})",
                .parameters = 2112,
                .seq_len = 4,
                .training_flops = 39744}};

}  // namespace flopmeter
