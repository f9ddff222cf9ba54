// SPDX-License-Identifier: Apache-2.0
#include "deepseek.h"

#include <algorithm>

namespace flopmeter {
namespace {

LatentAttention read_attention(const Config& config, const DeepseekDefaults& defaults) {
  LatentAttention spec;
  spec.hidden = config.size({"hidden_size"});
  spec.heads = config.size({"num_attention_heads"});
  spec.q_rank =
      config.is_null("q_lora_rank") ? 0 : config.size_or({"q_lora_rank"}, defaults.q_rank);
  spec.kv_rank = config.size_or({"kv_lora_rank"}, 512);
  spec.d_nope = config.size_or({"qk_nope_head_dim"}, defaults.d_nope);
  spec.d_rope = config.size_or({"qk_rope_head_dim"}, 64);
  spec.d_v = config.size_or({"v_head_dim"}, defaults.d_v);
  spec.bias = config.flag_or({"attention_bias"}, false);
  return spec;
}

/// By layer: 1 with experts, 0 without.
std::vector<int> read_sparse(const Config& config, std::int64_t layers, std::int64_t first_dense) {
  std::vector<int> sparse;
  for (const std::string& type : config.texts({"mlp_layer_types"}))
    sparse.push_back(type == "sparse" ? 1 : 0);
  const std::int64_t dense = config.count_or({"first_k_dense_replace"}, first_dense);
  if (sparse.empty()) {
    for (std::int64_t i = 0; i < layers; ++i) sparse.push_back(i >= dense ? 1 : 0);
  } else if (static_cast<std::int64_t>(sparse.size()) != layers) {
    config.fail("key 'mlp_layer_types' must have one type per layer (num_hidden_layers)");
  }
  return sparse;
}

/// DeepSeek's modeling code, which files reference in `auto_map`, stores the expert-balancing bias
/// as a parameter of the router; transformers stores it as a buffer.
bool balance_is_parameter(const Config& config) {
  const bool by_transformers = config.has("transformers_version") && !config.has("auto_map");
  return !by_transformers && config.text_or({"topk_method"}, "noaux_tc") == "noaux_tc";
}

}  // namespace

void add_predictions(ModelBuilder& builder,
                     std::int64_t first,
                     std::int64_t count,
                     const DecoderFrame& frame,
                     const std::function<Value(LayerBuilder&, Value)>& decoder_layer) {
  const std::int64_t hidden = frame.hidden;
  LayerRun& run = builder.once("model.layers.", [&](LayerBuilder& layer) {
    Value x = norm(layer, LayerBuilder::input(), "enorm", hidden);
    x = norm(layer, x, "hnorm", hidden);
    x = layer.linear(x, {.name = "eh_proj", .in = 2 * hidden, .out = hidden});
    x = norm(layer, decoder_layer(layer, x), "shared_head.norm", hidden);
    layer.output(layer.linear(
        x, {.name = "shared_head.head", .in = hidden, .out = frame.vocab, .tied = true}));
  });
  run.numbered = true;
  run.first = first;
  run.count = count;
  run.checkpointed = true;
  run.mtp = true;
  // Keeps the router component, so that conventions without routers exclude it here too.
  for (Node& node : builder.model.kinds[run.kind].nodes) {
    if (node.component != Component::router) node.component = Component::mtp;
  }
}

Value latent_attention(LayerBuilder& layer, Value x, const LatentAttention& spec) {
  const std::int64_t d_qk = spec.d_nope + spec.d_rope;
  const auto project =
      [&](Value from, std::string_view name, std::int64_t in, std::int64_t out, bool bias) {
        return layer.linear(from,
                            {.name = name,
                             .in = in,
                             .out = out,
                             .bias = bias,
                             .component = Component::attention_projections});
      };
  Value q = x;
  if (spec.q_rank == 0) {
    q = project(x, "self_attn.q_proj", spec.hidden, spec.heads * d_qk, false);
  } else {
    q = project(x, "self_attn.q_a_proj", spec.hidden, spec.q_rank, spec.bias);
    q = norm(layer, q, "self_attn.q_a_layernorm", spec.q_rank);
    q = project(q, "self_attn.q_b_proj", spec.q_rank, spec.heads * d_qk, false);
  }
  Value kv = project(
      x, "self_attn.kv_a_proj_with_mqa", spec.hidden, spec.kv_rank + spec.d_rope, spec.bias);
  kv = norm(layer, kv, "self_attn.kv_a_layernorm", spec.kv_rank);
  kv = project(
      kv, "self_attn.kv_b_proj", spec.kv_rank, spec.heads * (spec.d_nope + spec.d_v), false);
  const Value core = layer.attention(
      q, kv, kv, {.heads = spec.heads, .kv_heads = spec.heads, .d_qk = d_qk, .d_v = spec.d_v});
  return project(core, "self_attn.o_proj", spec.heads * spec.d_v, spec.hidden, spec.bias);
}

Model build_deepseek(const Config& config, const DeepseekDefaults& defaults) {
  const std::int64_t layers = config.size({"num_hidden_layers"});
  const LatentAttention attention = read_attention(config, defaults);
  const std::int64_t hidden = attention.hidden;
  const bool bias = config.flag_or({"mlp_bias"}, false);
  const MlpBlock mlp{.hidden = hidden, .ffn = config.size({"intermediate_size"}), .bias = bias};
  MoeBlock moe;
  moe.hidden = hidden;
  moe.ffn = config.size_or({"moe_intermediate_size"}, defaults.moe_ffn);
  moe.shared_ffn = product(config, moe.ffn, config.count_or({"n_shared_experts"}, defaults.shared));
  moe.shared_bias = bias;
  if (defaults.balanced && balance_is_parameter(config))
    moe.balance = "mlp.gate.e_score_correction_bias";
  read_experts(config,
               moe,
               {"n_routed_experts", "num_local_experts", "num_experts"},
               defaults.experts,
               defaults.active);
  const DecoderFrame frame{.hidden = hidden,
                           .vocab = config.size({"vocab_size"}),
                           .tied = config.flag_or({"tie_word_embeddings"}, false)};
  // Checks of every decoder; a latent head is as wide as its parts.
  Decoder sizes;
  sizes.layers = layers;
  sizes.attention.heads = sizes.attention.kv_heads = attention.heads;
  sizes.attention.head_dim = attention.d_nope + attention.d_rope + attention.d_v;
  if (!check_sizes(config, sizes)) return {};
  const std::vector<int> sparse_layers = read_sparse(config, layers, defaults.first_dense);
  const bool any_sparse = std::count(sparse_layers.begin(), sparse_layers.end(), 1) > 0;
  const auto decoder_layer = [&](LayerBuilder& layer, Value x, bool sparse) {
    const Value a = norm(layer, x, "input_layernorm", hidden);
    x = layer.sum(x, latent_attention(layer, a, attention));
    const Value y = norm(layer, x, "post_attention_layernorm", hidden);
    return layer.sum(x, sparse ? moe_block(layer, y, moe) : mlp_block(layer, y, mlp));
  };

  ModelBuilder builder;
  open_decoder(builder, frame);
  builder.layers("model.layers.", sparse_layers, [&](LayerBuilder& layer, int kind) {
    layer.output(decoder_layer(layer, LayerBuilder::input(), kind == 1));
  });
  const std::int64_t predictions =
      config.count_or({"num_nextn_predict_layers", "num_mtp_layers"}, defaults.predictions);
  if (predictions > 0) {
    add_predictions(builder, layers, predictions, frame, [&](LayerBuilder& layer, Value x) {
      return decoder_layer(layer, x, any_sparse);
    });
  }
  close_decoder(builder, frame);

  ModelFacts& facts = builder.model.facts;
  facts.layers = layers;
  facts.hidden = hidden;
  facts.heads = facts.kv_heads = attention.heads;
  facts.d_qk = attention.d_nope + attention.d_rope;
  facts.d_v = attention.d_v;
  facts.ffn = any_sparse ? moe.ffn : mlp.ffn;
  facts.gated_mlp = true;
  facts.vocab = frame.vocab;
  facts.tied = frame.tied;
  if (any_sparse) {
    facts.experts = moe.experts;
    facts.experts_active = moe.active;
  }
  return std::move(builder.model);
}

}  // namespace flopmeter
