// SPDX-License-Identifier: Apache-2.0
#include "delta_decoder.h"

#include <algorithm>

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
    config.fail("key 'layer_types' must have one type per layer (num_hidden_layers)");
  }
  return linear;
}

}  // namespace

DeltaDecoder read_delta_decoder(const Config& config, SparseDecoder base) {
  DeltaDecoder spec{.base = std::move(base), .delta = {}, .linear = {}};
  AttentionBlock& attention = spec.base.base.attention;
  attention.gated = true;
  attention.q_norm = "self_attn.q_norm";
  attention.k_norm = "self_attn.k_norm";
  spec.delta = {.hidden = attention.hidden,
                .key_heads = config.size_or({"linear_num_key_heads"}, 16),
                .value_heads = config.size_or({"linear_num_value_heads"}, 32),
                .d_k = config.size_or({"linear_key_head_dim"}, 128),
                .d_v = config.size_or({"linear_value_head_dim"}, 128),
                .kernel = config.size_or({"linear_conv_kernel_dim"}, 4)};
  check_delta_net(config, spec.delta);
  if (check_sizes(config, spec.base.base)) spec.linear = read_linear(config, spec.base.base.layers);
  return spec;
}

void read_gated_experts(const Config& config,
                        MoeBlock& moe,
                        std::int64_t default_count,
                        std::int64_t default_active) {
  moe.ffn = config.size_or({"moe_intermediate_size"}, 512);
  moe.shared_ffn = config.size_or({"shared_expert_intermediate_size"}, 512);
  moe.shared_gate_proj = "mlp.shared_expert.gate_proj";
  moe.shared_up_proj = "mlp.shared_expert.up_proj";
  moe.shared_down_proj = "mlp.shared_expert.down_proj";
  moe.shared_gate = "mlp.shared_expert_gate";
  read_experts(config, moe, {"num_experts", "num_local_experts"}, default_count, default_active);
}

void add_delta_layers(ModelBuilder& builder, const DeltaDecoder& spec) {
  const Decoder& base = spec.base.base;
  const std::vector<bool>& sparse = spec.base.sparse;
  // Bits of a kind: the first is set if it has experts, the second if it is a delta net.
  std::vector<int> kinds;
  for (std::size_t i = 0; i < spec.linear.size(); ++i)
    kinds.push_back((!sparse.empty() && sparse[i] ? 1 : 0) + 2 * spec.linear[i]);
  builder.layers(base.layer_prefix, kinds, [&](LayerBuilder& layer, int kind) {
    Value x = LayerBuilder::input();
    const Value a = norm(layer, x, base.norms.before_attention, base.frame.hidden);
    x = layer.sum(x,
                  kind >= 2 ? delta_net_block(layer, a, spec.delta)
                            : attention_block(layer, a, base.attention));
    const Value y = norm(layer, x, base.norms.before_mlp, base.frame.hidden);
    layer.output(layer.sum(
        x, kind % 2 == 1 ? moe_block(layer, y, spec.base.moe) : mlp_block(layer, y, base.mlp)));
  });
  const bool any = std::find(sparse.begin(), sparse.end(), true) != sparse.end();
  set_facts(builder.model,
            base.attention,
            base.layers,
            any ? spec.base.moe.ffn : base.mlp.ffn,
            /*gated=*/true,
            base.frame.vocab,
            base.frame.tied);
  if (any) {
    builder.model.facts.experts = spec.base.moe.experts;
    builder.model.facts.experts_active = spec.base.moe.active;
  }
}

}  // namespace flopmeter
