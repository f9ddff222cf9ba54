// SPDX-License-Identifier: Apache-2.0
#include "moe_block.h"

#include <algorithm>

namespace flopmeter {

Value moe_block(LayerBuilder& layer, Value x, const MoeBlock& spec) {
  Value scores = layer.linear(x,
                              {.name = spec.router,
                               .in = spec.hidden,
                               .out = spec.experts,
                               .bias = spec.router_bias,
                               .component = Component::router});
  if (!spec.balance.empty()) scores = layer.parameters(scores, spec.balance, spec.experts);
  const std::int64_t width = spec.latent > 0 ? spec.latent : spec.hidden;
  const Value narrow =
      spec.latent > 0
          ? layer.linear(x, {.name = spec.latent_down, .in = spec.hidden, .out = spec.latent})
          : x;
  const Value inner = layer.linear(narrow,
                                   {.name = spec.gate_up,
                                    .in = width,
                                    .out = spec.gated ? 2 * spec.ffn : spec.ffn,
                                    .bias = spec.expert_bias,
                                    .experts = spec.experts,
                                    .active = spec.active,
                                    .every_expert_runs = spec.every_expert_runs});
  const Value routed = layer.linear(inner,
                                    {.name = spec.down,
                                     .in = spec.ffn,
                                     .out = width,
                                     .bias = spec.expert_bias,
                                     .experts = spec.experts,
                                     .active = spec.active,
                                     .every_expert_runs = spec.every_expert_runs});
  Value weighed = layer.product(routed, scores);
  if (spec.latent > 0)
    weighed =
        layer.linear(weighed, {.name = spec.latent_up, .in = spec.latent, .out = spec.hidden});
  if (spec.shared_ffn == 0) return weighed;
  Value shared = mlp_block(layer,
                           x,
                           {.hidden = spec.hidden,
                            .ffn = spec.shared_ffn,
                            .gated = spec.gated,
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
                  std::int64_t default_active,
                  Config::Keys active_keys) {
  moe.experts = config.size_or(count_keys, default_count);
  moe.active = config.size_or(active_keys, default_active);
  if (moe.active > moe.experts) {
    config.fail("key '" + std::string{*active_keys.begin()} + "' is " + std::to_string(moe.active) +
                ", but there are " + std::to_string(moe.experts) + " experts ('" +
                std::string{*count_keys.begin()} + "')");
  }
}

SparseDecoder read_sparse_decoder(const Config& config, const DecoderDefaults& defaults) {
  SparseDecoder spec;
  spec.base = read_decoder(config, defaults);
  spec.moe.hidden = spec.base.frame.hidden;
  if (check_sizes(config, spec.base))
    spec.sparse.assign(static_cast<std::size_t>(spec.base.layers), true);
  return spec;
}

void read_sparse_layers(const Config& config, SparseDecoder& spec) {
  const auto step = static_cast<std::size_t>(config.size_or({"decoder_sparse_step"}, 1));
  for (std::size_t i = 0; i < spec.sparse.size(); ++i) spec.sparse[i] = (i + 1) % step == 0;
  for (const std::int64_t dense : config.counts({"mlp_only_layers"})) {
    const auto layer = static_cast<std::size_t>(dense);
    if (layer < spec.sparse.size()) spec.sparse[layer] = false;
  }
}

void add_sparse_layers(ModelBuilder& builder, const SparseDecoder& spec) {
  const Decoder& base = spec.base;
  // Bits of a kind: the first is set if it has experts, the second if it has a window.
  std::vector<int> kinds;
  ModelFacts& facts = builder.model.facts;
  for (std::size_t i = 0; i < spec.sparse.size(); ++i) {
    const bool windowed = base.window > 0 && (base.windowed.empty() || base.windowed[i] == 1);
    kinds.push_back((spec.sparse[i] ? 1 : 0) + (windowed ? 2 : 0));
    facts.window_layers += windowed && base.local == MaskPairs::Shape::window ? 1 : 0;
  }
  builder.layers(base.layer_prefix, kinds, [&](LayerBuilder& layer, int kind) {
    AttentionBlock attention = base.attention;
    if (kind >= 2) attention.mask = {.shape = base.local, .size = base.window};
    const std::int64_t hidden = base.frame.hidden;
    Value x = LayerBuilder::input();
    const Value a = norm(layer, x, base.norms.before_attention, hidden, base.frame.norm_bias);
    Value mixed = attention_block(layer, a, attention);
    if (spec.sinks) mixed = layer.parameters(mixed, "self_attn.sinks", attention.heads);
    x = layer.sum(x, mixed);
    const Value y = norm(layer, x, base.norms.before_mlp, hidden, base.frame.norm_bias);
    const bool sparse = kind % 2 == 1;
    x = layer.sum(x, sparse ? moe_block(layer, y, spec.moe) : mlp_block(layer, y, base.mlp));
    layer.output(x);
  });
  const bool any = std::find(spec.sparse.begin(), spec.sparse.end(), true) != spec.sparse.end();
  set_facts(builder.model,
            base.attention,
            base.layers,
            any ? spec.moe.ffn : base.mlp.ffn,
            /*gated=*/true,
            base.frame.vocab,
            base.frame.tied);
  if (any) {
    facts.experts = spec.moe.experts;
    facts.experts_active = spec.moe.active;
  }
  if (facts.window_layers > 0) facts.window = base.window;
}

Model build_sparse_decoder(const Config& config, const SparseDecoder& spec) {
  if (!config.status()) return {};
  ModelBuilder builder;
  open_decoder(builder, spec.base.frame);
  add_sparse_layers(builder, spec);
  close_decoder(builder, spec.base.frame);
  return std::move(builder.model);
}

}  // namespace flopmeter
