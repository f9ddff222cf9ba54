// SPDX-License-Identifier: Apache-2.0
#include "moe_block.h"

#include <algorithm>

namespace flopmeter {

Value moe_block(LayerBuilder& layer, Value x, const MoeBlock& spec) {
  const Value scores = layer.linear(x,
                                    {.name = spec.router,
                                     .in = spec.hidden,
                                     .out = spec.experts,
                                     .bias = spec.router_bias,
                                     .component = Component::router});
  const Value inner = layer.linear(x,
                                   {.name = "mlp.experts.gate_up_proj",
                                    .in = spec.hidden,
                                    .out = 2 * spec.ffn,
                                    .bias = spec.expert_bias,
                                    .experts = spec.experts,
                                    .active = spec.active});
  const Value routed = layer.linear(inner,
                                    {.name = "mlp.experts.down_proj",
                                     .in = spec.ffn,
                                     .out = spec.hidden,
                                     .bias = spec.expert_bias,
                                     .experts = spec.experts,
                                     .active = spec.active});
  const Value weighed = layer.product(routed, scores);
  if (spec.shared_ffn == 0) return weighed;
  Value shared = mlp_block(layer,
                           x,
                           {.hidden = spec.hidden,
                            .ffn = spec.shared_ffn,
                            .bias = spec.shared_bias,
                            .gate = spec.shared_gate_proj,
                            .up = spec.shared_up_proj,
                            .down = spec.shared_down_proj});
  if (!spec.shared_gate.empty()) {
    shared = layer.product(shared,
                           layer.linear(x,
                                        {.name = spec.shared_gate,
                                         .in = spec.hidden,
                                         .out = 1,
                                         .component = Component::router}));
  }
  return layer.sum(weighed, shared);
}

void read_experts(const Config& config,
                  MoeBlock& moe,
                  Config::Keys count_keys,
                  std::int64_t default_count,
                  std::int64_t default_active) {
  moe.experts = config.size_or(count_keys, default_count);
  moe.active = config.size_or({"num_experts_per_tok"}, default_active);
  if (moe.active > moe.experts) {
    config.fail("key 'num_experts_per_tok' is " + std::to_string(moe.active) + ", but there are " +
                std::to_string(moe.experts) + " experts ('" + std::string{*count_keys.begin()} +
                "')");
  }
}

SparseDecoder read_sparse_decoder(const Config& config) {
  SparseDecoder spec;
  const std::int64_t hidden = config.size({"hidden_size"});
  const std::int64_t heads = config.size({"num_attention_heads"});
  const std::int64_t layers = config.size({"num_hidden_layers"});
  spec.attention.hidden = spec.mlp.hidden = spec.moe.hidden = spec.frame.hidden = hidden;
  spec.attention.heads = heads;
  spec.attention.kv_heads = config.size_or({"num_key_value_heads"}, heads);
  spec.attention.head_dim =
      config.size_or({"head_dim"}, std::max<std::int64_t>(hidden / heads, 1));
  spec.frame.vocab = config.size({"vocab_size"});
  spec.frame.tied = config.flag_or({"tie_word_embeddings"}, false);
  if (layers > max_layers) {
    config.fail("key 'num_hidden_layers' is " + std::to_string(layers) + ", expected at most " +
                std::to_string(max_layers));
    return spec;
  }
  spec.sparse.assign(static_cast<std::size_t>(layers), true);
  spec.window.assign(static_cast<std::size_t>(layers), 0);
  return spec;
}

std::vector<std::int64_t> typed_windows(const Config& config,
                                        std::size_t layers,
                                        std::int64_t window) {
  const std::vector<std::string> types = config.texts({"layer_types"});
  std::vector<std::int64_t> windows(layers, 0);
  if (types.size() != layers) {
    config.fail("key 'layer_types' has " + std::to_string(types.size()) + " entries for " +
                std::to_string(layers) + " layers");
    return windows;
  }
  for (std::size_t i = 0; i < layers; ++i) {
    if (types[i] == "sliding_attention") windows[i] = window;
  }
  return windows;
}

std::vector<bool> stepped_sparse(const Config& config, std::size_t layers) {
  const auto step = static_cast<std::size_t>(config.size_or({"decoder_sparse_step"}, 1));
  std::vector<bool> sparse(layers);
  for (std::size_t i = 0; i < layers; ++i) sparse[i] = (i + 1) % step == 0;
  for (const std::int64_t dense : config.counts({"mlp_only_layers"})) {
    if (static_cast<std::size_t>(dense) < layers) sparse[static_cast<std::size_t>(dense)] = false;
  }
  return sparse;
}

Model build(const SparseDecoder& spec) {
  // A kind says whether there are experts, in its first bit, and above it the window.
  std::vector<int> kinds;
  for (std::size_t i = 0; i < spec.sparse.size(); ++i) {
    const auto at = std::find(spec.window.begin(), spec.window.end(), spec.window[i]);
    kinds.push_back(static_cast<int>(2 * (at - spec.window.begin())) + int{spec.sparse[i]});
  }
  ModelBuilder builder;
  open_decoder(builder, spec.frame);
  builder.layers("model.layers.", kinds, [&](LayerBuilder& layer, int kind) {
    AttentionBlock attention = spec.attention;
    const std::int64_t window = spec.window[static_cast<std::size_t>(kind / 2)];
    if (window > 0) attention.mask = {.shape = MaskPairs::Shape::window, .size = window};
    const std::int64_t hidden = spec.frame.hidden;
    Value x = LayerBuilder::input();
    Value mixed = attention_block(layer, norm(layer, x, "input_layernorm", hidden), attention);
    if (spec.sinks) mixed = layer.parameters(mixed, "self_attn.sinks", attention.heads);
    x = layer.sum(x, mixed);
    const Value y = norm(layer, x, "post_attention_layernorm", hidden);
    x = layer.sum(x, kind % 2 == 1 ? moe_block(layer, y, spec.moe) : mlp_block(layer, y, spec.mlp));
    layer.output(x);
  });
  close_decoder(builder, spec.frame);
  const bool any_sparse = std::find(spec.sparse.begin(), spec.sparse.end(), true) != spec.sparse.end();
  set_facts(builder.model,
            spec.attention,
            static_cast<std::int64_t>(spec.sparse.size()),
            any_sparse ? spec.moe.ffn : spec.mlp.ffn,
            /*gated=*/true,
            spec.frame.vocab,
            spec.frame.tied);
  ModelFacts& facts = builder.model.facts;
  if (any_sparse) {
    facts.experts = spec.moe.experts;
    facts.experts_active = spec.moe.active;
  }
  for (const std::int64_t window : spec.window) {
    if (window == 0) continue;
    facts.window = window;
    ++facts.window_layers;
  }
  return std::move(builder.model);
}

}  // namespace flopmeter
