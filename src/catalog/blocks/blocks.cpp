// SPDX-License-Identifier: Apache-2.0
#include "blocks.h"

namespace flopmeter {

std::int64_t product(const Config& config, std::int64_t a, std::int64_t b) {
  const WideInt wide = WideInt{a} * b;
  if (wide <= WideInt{1} << 40U) return static_cast<std::int64_t>(wide);
  config.fail("sizes " + std::to_string(a) + " and " + std::to_string(b) +
              " multiply to more than 2^40");
  return 1;
}

Value norm(LayerBuilder& layer, Value x, std::string_view name, std::int64_t width, bool bias) {
  return layer.parameters(x, name, width, bias);
}

Value attention_block(LayerBuilder& layer, Value x, const AttentionBlock& spec) {
  const auto project = [&](std::string_view name, std::int64_t width) {
    return layer.linear(x,
                        {.name = name,
                         .in = spec.hidden,
                         .out = width,
                         .bias = spec.qkv_bias,
                         .component = Component::attention_projections});
  };
  const std::int64_t q_width = spec.heads * spec.head_dim;
  const std::int64_t kv_width = spec.kv_heads * spec.head_dim;
  const bool fused = spec.names.k.empty();
  const std::int64_t wide = spec.gated ? 2 * q_width : q_width;
  Value q = project(spec.names.q, fused ? wide + 2 * kv_width : wide);
  Value k = fused ? q : project(spec.names.k, kv_width);
  const Value v = fused ? q : project(spec.names.v, kv_width);
  if (!spec.q_norm.empty()) {
    const bool whole = spec.norm_whole_width;
    q = norm(layer, q, spec.q_norm, whole ? q_width : spec.head_dim, spec.norm_bias);
    k = norm(layer, k, spec.k_norm, whole ? kv_width : spec.head_dim, spec.norm_bias);
  }
  const Value core = layer.attention(q,
                                     k,
                                     v,
                                     {.heads = spec.heads,
                                      .kv_heads = spec.kv_heads,
                                      .d_qk = spec.head_dim,
                                      .d_v = spec.head_dim,
                                      .mask = spec.mask,
                                      .mask_tensor = spec.mask_tensor});
  return layer.linear(core,
                      {.name = spec.names.o,
                       .in = q_width,
                       .out = spec.hidden,
                       .bias = spec.out_bias,
                       .component = Component::attention_projections});
}

Value mlp_block(LayerBuilder& layer, Value x, const MlpBlock& spec) {
  const bool fused = spec.gated && spec.gate.empty();
  const auto widen = [&](std::string_view name) {
    return layer.linear(x,
                        {.name = name,
                         .in = spec.hidden,
                         .out = fused ? 2 * spec.ffn : spec.ffn,
                         .bias = spec.bias,
                         .component = spec.component,
                         .rows = spec.rows});
  };
  const bool apart = spec.gated && !fused;
  Value inner = widen(apart ? spec.gate : spec.up);
  if (apart) inner = layer.sum(inner, widen(spec.up));
  return layer.linear(inner,
                      {.name = spec.down,
                       .in = spec.ffn,
                       .out = spec.hidden,
                       .bias = spec.bias,
                       .component = spec.component,
                       .rows = spec.rows});
}

void set_facts(Model& model,
               const AttentionBlock& attention,
               std::int64_t layers,
               std::int64_t ffn,
               bool gated,
               std::int64_t vocab,
               bool tied) {
  ModelFacts& facts = model.facts;
  facts.layers = layers;
  facts.hidden = attention.hidden;
  facts.heads = attention.heads;
  facts.kv_heads = attention.kv_heads;
  facts.d_qk = facts.d_v = attention.head_dim;
  facts.ffn = ffn;
  facts.gated_mlp = gated;
  facts.vocab = vocab;
  facts.tied = tied;
}

void open_decoder(ModelBuilder& builder, const DecoderFrame& frame) {
  builder.once(frame.prefix, [&](LayerBuilder& layer) {
    Value x = layer.embedding(frame.embed, frame.vocab, frame.hidden);
    if (!frame.embed_positions.empty()) {
      x = layer.sum(x, layer.embedding(frame.embed_positions, frame.positions, frame.hidden));
    }
    if (!frame.embed_norm.empty())
      x = norm(layer, x, frame.embed_norm, frame.hidden, frame.norm_bias);
    layer.output(x);
  });
}

void close_decoder(ModelBuilder& builder, const DecoderFrame& frame) {
  if (!frame.final_norm.empty()) {
    builder.once(frame.prefix, [&](LayerBuilder& layer) {
      layer.output(
          norm(layer, LayerBuilder::input(), frame.final_norm, frame.hidden, frame.norm_bias));
    });
  }
  builder.once("", [&](LayerBuilder& layer) {
    layer.output(layer.linear(LayerBuilder::input(),
                              {.name = frame.head,
                               .in = frame.hidden,
                               .out = frame.vocab,
                               .bias = frame.head_bias,
                               .component = Component::lm_head,
                               .tied = frame.tied}));
  });
}

}  // namespace flopmeter
