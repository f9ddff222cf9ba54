// SPDX-License-Identifier: Apache-2.0
//
// A hybrid of Megatron: layers of one mixer each, in the order of `hybrid_layer_pattern`, which is
// written as Megatron's argument: M is Mamba-2, G a gated delta net, * attention, - an MLP, E
// experts; | separates pipeline stages, and each / begins the layers of one prediction depth.
#include "../blocks/megatron_arguments.h"

#include <flopmeter/catalog/model_family.h>

#include <algorithm>

namespace flopmeter {
namespace {

struct Hybrid {
  Decoder decoder;
  Mamba2Block mamba;
  DeltaNetBlock delta;
  MoeBlock moe;
  std::vector<int> kinds;       ///< letters of the layers
  std::vector<int> prediction;  ///< letters of the layers of one depth
  std::int64_t depths = 0;

  [[nodiscard]] std::int64_t count(char letter) const {
    return std::count(kinds.begin(), kinds.end(), int{letter}) +
           depths * std::count(prediction.begin(), prediction.end(), int{letter});
  }
};

void read_pattern(const Config& config, Hybrid& spec) {
  const std::string pattern{
      config.text_or({"hybrid_layer_pattern", "hybrid_override_pattern"}, "")};
  std::vector<std::vector<int>> parts(1);
  for (const char c : pattern) {
    if (c == '/') {
      parts.emplace_back();
    } else if (std::string_view{"MG*-E"}.find(c) != std::string_view::npos) {
      parts.back().push_back(int{c});
    } else if (c != '|') {
      config.fail(
          "key 'hybrid_layer_pattern' names a layer that is none of M (Mamba-2), G (gated delta "
          "net), * (attention), - (MLP), E (experts)");
    }
  }
  spec.kinds = parts[0];
  if (spec.kinds.empty()) config.fail("key 'hybrid_layer_pattern' must name at least one layer");
  if (parts.size() < 2 || parts[1].empty()) return;
  if (!std::all_of(
          parts.begin() + 1, parts.end(), [&](const auto& each) { return each == parts[1]; }))
    config.fail("key 'hybrid_layer_pattern' has prediction depths that differ");
  spec.prediction = parts[1];
  spec.depths = static_cast<std::int64_t>(parts.size()) - 1;
}

Hybrid read(const Config& config) {
  Hybrid spec;
  spec.decoder = read_megatron_decoder(config);
  read_pattern(config, spec);
  spec.decoder.layers = static_cast<std::int64_t>(spec.kinds.size());
  const std::int64_t hidden = spec.decoder.frame.hidden;
  if (spec.count('M') > 0) {
    const std::int64_t head_dim = config.size_or({"mamba_head_dim"}, 64);
    spec.mamba = {.hidden = hidden,
                  .heads = config.size_or({"mamba_num_heads"},
                                          std::max<std::int64_t>(1, 2 * hidden / head_dim)),
                  .head_dim = head_dim,
                  .groups = config.size_or({"mamba_num_groups"}, 8),
                  .state = config.size_or({"mamba_state_dim"}, 128),
                  .kernel = 4};
    check_mamba2(config, spec.mamba);
  }
  if (spec.count('G') > 0) spec.delta = read_megatron_delta_net(config, hidden);
  if (spec.count('E') > 0) spec.moe = read_megatron_experts(config, spec.decoder);
  return spec;
}

Value describe(LayerBuilder& layer, Value x, const Hybrid& spec, int letter) {
  const DecoderFrame& frame = spec.decoder.frame;
  const Value y = norm(layer, x, "norm", frame.hidden, frame.norm_bias);
  switch (letter) {
    case 'M':
      return layer.sum(x, mamba2_block(layer, y, spec.mamba));
    case 'G':
      return layer.sum(x, delta_net_block(layer, y, spec.delta));
    case '*':
      return layer.sum(x, attention_block(layer, y, spec.decoder.attention));
    case 'E':
      return layer.sum(x, moe_block(layer, y, spec.moe));
    default:
      return layer.sum(x, mlp_block(layer, y, spec.decoder.mlp));
  }
}

Model build(const Config& config) {
  const Hybrid spec = read(config);
  const Decoder& decoder = spec.decoder;
  if (!check_sizes(config, decoder)) return {};
  ModelBuilder builder;
  open_decoder(builder, decoder.frame);
  builder.layers(decoder.layer_prefix, spec.kinds, [&](LayerBuilder& layer, int letter) {
    layer.output(describe(layer, LayerBuilder::input(), spec, letter));
  });
  if (spec.depths > 0) {
    add_predictions(
        builder, decoder.layers, spec.depths, decoder.frame, [&](LayerBuilder& layer, Value x) {
          for (const int letter : spec.prediction) x = describe(layer, x, spec, letter);
          return x;
        });
  }
  close_decoder(builder, decoder.frame);
  const bool sparse = spec.count('E') > 0;
  set_facts(builder.model,
            decoder.attention,
            decoder.layers,
            sparse ? spec.moe.ffn : decoder.mlp.ffn,
            decoder.mlp.gated,
            decoder.frame.vocab,
            decoder.frame.tied);
  ModelFacts& facts = builder.model.facts;
  facts.hybrid = true;
  read_megatron_wide_layers(config, facts);
  facts.scan_layers = std::count(spec.kinds.begin(), spec.kinds.end(), int{'M'});
  if (sparse) {
    facts.experts = spec.moe.experts;
    facts.experts_active = spec.moe.active;
  }
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_megatron_hybrid{
    .name = "megatron_hybrid",
    .help = "Mamba-2, delta nets, attention, MLPs, and experts by Megatron's hybrid_layer_pattern",
    .types = "megatron_hybrid",
    .build = build,
    .random_config = {.recurrent = true},
    // h = 8, V = 32, s = 4. Mamba-2: 2 heads of 4, 1 group of state 2, kernel 4: in_proj 8*(8 + 12
    // + 2) = 176, convolution 4*12 + 12, dt, A, D 6, norm 8, out_proj 64. Delta net: 1 key head and
    // 1 value head of 4: in_proj 8*(16 + 2) = 144, convolution 4*12, dt, A 2, norm 4, out_proj 32.
    // Attention: 2 heads of 4, 1 key group: 192. MLP 2*8*16 = 256. Experts: router 32, 4 of 2*8*4 =
    // 64.
    // Parameters: 512 + 314 + 230 + 192 + 256 + 288 + norms 6*8 = 1840. Per token, forward:
    // 2*(240 + 48 + 176 + 48 + 192 + 256 + 32 + 2*64 + 256) = 2752, scan 7*8*2 = 112, delta rule
    // 8*16 = 128; attention 10 pairs x 2 heads x 2*(4+4) = 320. Training: 3*(4*2992 + 320).
    .example = {.config = R"({"model_type": "megatron_hybrid", "hybrid_layer_pattern": "MG|*-E",
                             "hidden_size": 8, "padded_vocab_size": 32, "num_attention_heads": 2,
                             "num_query_groups": 1, "kv_channels": 4, "ffn_hidden_size": 16,
                             "mamba_num_heads": 2, "mamba_head_dim": 4, "mamba_num_groups": 1,
                             "mamba_state_dim": 2, "linear_num_key_heads": 1,
                             "linear_num_value_heads": 1, "linear_key_head_dim": 4,
                             "linear_value_head_dim": 4, "num_experts": 4, "moe_router_topk": 2,
                             "moe_ffn_hidden_size": 4, "add_bias_linear": false,
                             "normalization": "RMSNorm", "position_embedding_type": "rope",
                             "untie_embeddings_and_output_weights": true})",
                .parameters = 1840,
                .seq_len = 4,
                .training_flops = 36864}};

}  // namespace flopmeter
