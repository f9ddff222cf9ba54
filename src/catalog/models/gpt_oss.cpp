// SPDX-License-Identifier: Apache-2.0
//
// GPT-OSS: windows in every other layer, attention sinks, experts with biases.
#include "../blocks/moe_block.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

bool is_even(std::int64_t layer, std::int64_t /*unused*/) {
  return layer % 2 == 0;
}

Model build_gpt_oss(const Config& config) {
  const bool own_dim = !config.is_null("head_dim");
  SparseDecoder spec = read_sparse_decoder(config, {.kv_heads = 8, .head_dim = own_dim ? 64 : 0});
  Decoder& base = spec.base;
  base.attention.qkv_bias = base.attention.out_bias = config.flag_or({"attention_bias"}, true);
  spec.sinks = true;
  spec.moe.ffn = base.mlp.ffn;
  spec.moe.router = "mlp.router";
  spec.moe.router_bias = spec.moe.expert_bias = true;
  read_experts(config, spec.moe, {"num_local_experts", "num_experts"}, 128, 4);
  if (!config.is_null("sliding_window")) base.window = config.count_or({"sliding_window"}, 128);
  base.windowed = read_windowed(config, base.layers, is_even, 0);
  return build_sparse_decoder(config, spec);
}

}  // namespace

extern constinit const ModelFamily model_gpt_oss{
    .name = "gpt_oss",
    .help = "GPT-OSS: windows in every other layer, attention sinks, experts with biases",
    .types = "gpt_oss GptOssForCausalLM",
    .build = build_gpt_oss,
    .random_config = {.experts = RandomConfig::Experts::of_mlp_width,
                      .keys = R"("sliding_window": null)"},
    // Two layers, the first with window 2; h = 8, n = 2, g = 1, d = 4, V = 32, 4 experts of f =
    // 4 and 2 active, s = 4. Parameters: embedding and head 512; a layer: q, o 64, k, v 32 and
    // biases 8+4+4+8, sinks 2, router 32+4, experts 4*(96 + 8 + 8), norms 16: 718; final norm
    // 8: 1956. Per token, forward: 2*(2*(192 + 32 + 2*96) + 256) = 2176; attention (7 + 10)
    // pairs x 2 heads x 16 = 544. Training: 3*(4*2176 + 544).
    .example = {.config = R"({"model_type": "gpt_oss", "hidden_size": 8, "num_hidden_layers": 2,
                             "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
                             "intermediate_size": 4, "vocab_size": 32, "num_local_experts": 4,
                             "num_experts_per_tok": 2, "sliding_window": 2})",
                .parameters = 1956,
                .seq_len = 4,
                .training_flops = 27744}};

}  // namespace flopmeter
