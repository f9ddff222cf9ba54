// SPDX-License-Identifier: Apache-2.0
//
// Qwen3-Next: gated delta nets in three of four layers, attention with a gate in the others, and
// experts with a shared one.
#include "../blocks/delta_decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  SparseDecoder base = read_sparse_decoder(config, {.kv_heads = 2, .head_dim = 256});
  base.base.attention.qkv_bias = base.base.attention.out_bias =
      config.flag_or({"attention_bias"}, false);
  read_gated_experts(config, base.moe, 512, 10);
  read_sparse_layers(config, base);
  const DeltaDecoder spec = read_delta_decoder(config, std::move(base));
  if (!config.status()) return {};
  ModelBuilder builder;
  open_decoder(builder, spec.base.base.frame);
  add_delta_layers(builder, spec);
  close_decoder(builder, spec.base.base.frame);
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_qwen3_next{
    .name = "qwen3_next",
    .help = "Qwen3-Next: gated delta nets, gated attention in every fourth layer, experts",
    .types = "qwen3_next Qwen3NextForCausalLM",
    .build = build,
    .random_config = {.experts = RandomConfig::Experts::of_own_width, .recurrent = true},
    // Two layers, the first linear; h = 8, n = 2, g = 1, d = 4, V = 32, 4 experts of f = 4 and 2
    // active, shared 4, s = 4. Delta net: 1 key head and 2 value heads of 2, kernel 3: in_proj
    // 8*(4 + 8) and 8*4, convolution 3*8, dt and A 4, norm 2, out_proj 32: 190. Attention: q 128,
    // k, v 32 each, o 64, norms 8: 264. Experts, both layers: router 32, 4*96, shared 96, its gate
    // 8: 520. Parameters: 512 + 190 + 264 + 2*520 + norms 5*8 = 2046. Per token, forward: 2*(128 +
    // 24 + 32 + 256 + 2*(32 + 192 + 96 + 8) + 256) = 2704; delta rule 8*2*2*2 = 64;
    // attention 10 pairs x 2 heads x 2*(4+4) = 320. Training: 3*(4*2768 + 320).
    .example = {.config = R"({"model_type": "qwen3_next", "hidden_size": 8, "num_hidden_layers": 2,
                             "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
                             "intermediate_size": 16, "vocab_size": 32,
                             "full_attention_interval": 2, "num_experts": 4,
                             "num_experts_per_tok": 2, "moe_intermediate_size": 4,
                             "shared_expert_intermediate_size": 4, "linear_num_key_heads": 1,
                             "linear_num_value_heads": 2, "linear_key_head_dim": 2,
                             "linear_value_head_dim": 2, "linear_conv_kernel_dim": 3})",
                .parameters = 2046,
                .seq_len = 4,
                .training_flops = 34176}};

}  // namespace flopmeter
