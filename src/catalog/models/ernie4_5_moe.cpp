// SPDX-License-Identifier: Apache-2.0
//
// ERNIE 4.5 with experts: a range of layers has them, two of them shared; a bias that balances the
// routing is a parameter without a gradient.
#include "../blocks/moe_block.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  SparseDecoder spec = read_sparse_decoder(config, {.kv_heads = 4, .tied = true});
  const bool bias = config.flag_or({"use_bias"}, false);
  spec.base.attention.qkv_bias = spec.base.attention.out_bias = bias;
  spec.base.mlp.bias = spec.moe.shared_bias = spec.base.frame.head_bias = bias;
  spec.moe.ffn = config.size_or({"moe_intermediate_size"}, 1536);
  spec.moe.shared_ffn =
      product(config, spec.moe.ffn, config.count_or({"moe_num_shared_experts"}, 2));
  spec.moe.balance = "mlp.gate.moe_statics.e_score_correction_bias";
  read_experts(config,
               spec.moe,
               {"moe_num_experts", "num_experts"},
               64,
               6,
               {"moe_k", "num_experts_per_tok"});
  const std::int64_t first = config.count_or({"moe_layer_start_index"}, 1);
  const std::int64_t step = config.size_or({"moe_layer_interval"}, 1);
  const double last = config.number_or({"moe_layer_end_index"}, -1);  // -1: to the end
  for (std::size_t i = 0; i < spec.sparse.size(); ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    const bool inside = layer >= first && (last == -1 || static_cast<double>(layer) <= last);
    spec.sparse[i] = inside && (layer + 1) % step == 0;
  }
  return build_sparse_decoder(config, spec);
}

}  // namespace

extern constinit const ModelFamily model_ernie4_5_moe{
    .name = "ernie4_5_moe",
    .help = "ERNIE 4.5 with experts, two of them shared",
    .types = "ernie4_5_moe Ernie4_5_MoeForCausalLM",
    .build = build,
    .random_config = {.experts = RandomConfig::Experts::of_own_width,
                      .keys = R"("moe_num_shared_experts": 0, "moe_layer_start_index": 0)"},
    // One layer, h = 8, n = 2, g = 1, d = 4, V = 32, 4 experts of f = 4 and 2 active, two shared, s
    // = 4. Parameters: embedding, tied to the head, 256; q, o 64 each; k, v 32 each; router 32 and
    // 4; experts 4*96; shared 192; norms 24: 1084. Per token, forward: 2*(192 + 32 + 2*96 + 192 +
    // 256) = 1728; attention 10 pairs x 2 heads x 2*(4+4) = 320. Training: 3*(4*1728 + 320).
    .example = {
        .config = R"({"model_type": "ernie4_5_moe", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "vocab_size": 32, "moe_layer_start_index": 0,
                             "moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 4})",
        .parameters = 1084,
        .seq_len = 4,
        .training_flops = 21696}};

}  // namespace flopmeter
