// SPDX-License-Identifier: Apache-2.0
//
// Qwen3-Next: gated delta nets in three layers of four, attention with a gate in the others, and
// experts with a shared one.
#include "../src/moe_block.h"
#include "../src/recurrent_block.h"

#include <flopmeter/catalog/model_family.h>

#include <array>

namespace flopmeter {
namespace {

std::vector<int> read_linear(const Config& config, std::int64_t layers) {
  std::vector<int> linear;
  for (const std::string& type : config.texts({"layer_types"}))
    linear.push_back(type == "linear_attention" ? 1 : 0);
  const std::int64_t every = config.size_or({"full_attention_interval"}, 4);
  if (linear.empty()) {
    for (std::int64_t i = 0; i < layers; ++i) linear.push_back((i + 1) % every != 0 ? 1 : 0);
  } else if (static_cast<std::int64_t>(linear.size()) != layers) {
    config.fail("key 'layer_types' does not hold one type for each of num_hidden_layers");
  }
  return linear;
}

DeltaNetBlock read_delta_net(const Config& config, std::int64_t hidden) {
  const DeltaNetBlock spec{.hidden = hidden,
                           .key_heads = config.size_or({"linear_num_key_heads"}, 16),
                           .value_heads = config.size_or({"linear_num_value_heads"}, 32),
                           .d_k = config.size_or({"linear_key_head_dim"}, 128),
                           .d_v = config.size_or({"linear_value_head_dim"}, 128),
                           .kernel = config.size_or({"linear_conv_kernel_dim"}, 4)};
  check_delta_net(config, spec);
  return spec;
}

SparseDecoder read_experts_and_attention(const Config& config) {
  SparseDecoder spec = read_sparse_decoder(config, {.kv_heads = 2, .head_dim = 256});
  AttentionBlock& attention = spec.base.attention;
  attention.qkv_bias = attention.out_bias = config.flag_or({"attention_bias"}, false);
  attention.gated = true;
  attention.q_norm = "self_attn.q_norm";
  attention.k_norm = "self_attn.k_norm";
  spec.moe.ffn = config.size_or({"moe_intermediate_size"}, 512);
  spec.moe.shared_ffn = config.size_or({"shared_expert_intermediate_size"}, 512);
  spec.moe.shared_gate_proj = "mlp.shared_expert.gate_proj";
  spec.moe.shared_up_proj = "mlp.shared_expert.up_proj";
  spec.moe.shared_down_proj = "mlp.shared_expert.down_proj";
  spec.moe.shared_gate = "mlp.shared_expert_gate";
  read_experts(config, spec.moe, {"num_experts", "num_local_experts"}, 512, 10);
  read_sparse_layers(config, spec);
  return spec;
}

Model build(const Config& config) {
  const SparseDecoder spec = read_experts_and_attention(config);
  const Decoder& base = spec.base;
  if (!check_sizes(config, base)) return {};
  const DeltaNetBlock delta = read_delta_net(config, base.frame.hidden);
  const std::vector<int> linear = read_linear(config, base.layers);
  if (!config.status()) return {};
  std::vector<int> kinds;
  for (std::size_t i = 0; i < spec.sparse.size(); ++i)
    kinds.push_back((spec.sparse[i] ? 1 : 0) + 2 * linear[i]);
  ModelBuilder builder;
  open_decoder(builder, base.frame);
  builder.layers(base.layer_prefix, kinds, [&](LayerBuilder& layer, int kind) {
    Value x = LayerBuilder::input();
    const Value a = norm(layer, x, base.norms.before_attention, base.frame.hidden);
    x = layer.sum(
        x,
        kind >= 2 ? delta_net_block(layer, a, delta) : attention_block(layer, a, base.attention));
    const Value y = norm(layer, x, base.norms.before_mlp, base.frame.hidden);
    const bool sparse = kind % 2 == 1;
    layer.output(
        layer.sum(x, sparse ? moe_block(layer, y, spec.moe) : mlp_block(layer, y, base.mlp)));
  });
  close_decoder(builder, base.frame);
  set_facts(builder.model,
            base.attention,
            base.layers,
            spec.moe.ffn,
            /*gated=*/true,
            base.frame.vocab,
            base.frame.tied);
  builder.model.facts.experts = spec.moe.experts;
  builder.model.facts.experts_active = spec.moe.active;
  return std::move(builder.model);
}

constexpr std::array<std::string_view, 2> types = {"qwen3_next", "Qwen3NextForCausalLM"};

}  // namespace

extern const ModelFamily qwen3_next_plugin;
constinit const ModelFamily qwen3_next_plugin{
    .name = "qwen3_next",
    .help = "Qwen3-Next: gated delta nets, gated attention in every fourth layer, experts",
    .types = types,
    .build = build,
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
