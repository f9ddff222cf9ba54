// SPDX-License-Identifier: Apache-2.0
//
// Nemotron-H, Nemotron Nano 2 and Nemotron 3: layers of one mixer each, which is Mamba-2,
// attention, an MLP without a gate, or experts, in a latent space or not.
#include "../blocks/deepseek.h"
#include "../blocks/recurrent_block.h"

#include <flopmeter/catalog/model_family.h>

#include <algorithm>
#include <array>

namespace flopmeter {
namespace {

enum Kind : int { mamba, attention, mlp, moe };

/// Sizes of all layers of a model.
struct Hybrid {
  std::int64_t hidden = 0;
  Mamba2Block mamba;
  AttentionBlock attention;
  MlpBlock mlp;
  MlpBlock shared;
  MoeBlock moe;
  std::int64_t latent = 0;  ///< width of the experts; 0: that of the model
};

/// "M*-E", or the equivalent list that transformers writes.
std::vector<int> read_kinds(const Config& config, Config::Keys list, std::string_view pattern) {
  struct Name {
    std::string_view letter, name, older;
    Kind kind;
  };
  static constexpr auto names =
      std::to_array<Name>({{"M", "linear_attention", "mamba", Kind::mamba},
                           {"*", "full_attention", "attention", Kind::attention},
                           {"-", "mlp", "mlp", Kind::mlp},
                           {"E", "moe", "moe", Kind::moe}});
  std::vector<std::string> words = config.texts(list);
  if (words.empty()) {
    for (const char c : pattern) words.emplace_back(1, c);
  }
  if (words.size() > static_cast<std::size_t>(most_layers)) {
    config.fail("more than 65536 layers, so no model configuration");
    return {};
  }
  std::vector<int> kinds;
  for (const std::string& word : words) {
    const auto known = std::find_if(names.begin(), names.end(), [&](const Name& name) {
      return word == name.letter || word == name.name || word == name.older;
    });
    if (known == names.end()) {
      config.fail(
          "key 'layers_block_type' or 'hybrid_override_pattern' names a layer that is none of "
          "mamba (M), attention (*), mlp (-) and moe (E)");
      return {};
    }
    kinds.push_back(known->kind);
  }
  return kinds;
}

void read_moe(const Config& config, Hybrid& spec) {
  const bool bias = config.flag_or({"mlp_bias"}, false);
  spec.mlp = {.hidden = spec.hidden,
              .ffn = config.size_or({"intermediate_size"}, 21504),
              .gated = false,
              .bias = bias,
              .up = "mixer.up_proj",
              .down = "mixer.down_proj"};
  spec.shared = spec.mlp;
  spec.shared.ffn = config.size_or({"moe_shared_expert_intermediate_size"}, 7688);
  spec.shared.up = "mixer.shared_experts.up_proj";
  spec.shared.down = "mixer.shared_experts.down_proj";
  spec.moe.ffn = config.size_or({"moe_intermediate_size"}, 7688);
  read_experts(config, spec.moe, {"n_routed_experts", "num_local_experts"}, 8, 2);
  spec.latent = config.count_or({"moe_latent_size"}, 0);
}

Hybrid read_hybrid(const Config& config) {
  Hybrid spec;
  spec.hidden = config.size({"hidden_size"});
  const bool bias = config.flag_or({"use_bias"}, false);
  spec.mamba = {.hidden = spec.hidden,
                .heads = config.size_or({"mamba_num_heads"}, 128),
                .head_dim = config.size_or({"mamba_head_dim"}, 64),
                .groups = config.size_or({"n_groups", "mamba_n_groups"}, 8),
                .state = config.size_or({"ssm_state_size"}, 128),
                .kernel = config.size_or({"conv_kernel", "mamba_d_conv"}, 4),
                .bias = bias,
                .out_bias = bias,
                .conv_bias = config.flag_or({"use_conv_bias", "mamba_conv_bias"}, true)};
  check_mamba2(config, spec.mamba);
  spec.attention.hidden = spec.hidden;
  spec.attention.heads = config.size_or({"num_attention_heads"}, 32);
  spec.attention.kv_heads = config.size_or({"num_key_value_heads"}, 8);
  spec.attention.head_dim = config.size_or({"head_dim"}, 128);
  spec.attention.names = {
      .q = "mixer.q_proj", .k = "mixer.k_proj", .v = "mixer.v_proj", .o = "mixer.o_proj"};
  read_moe(config, spec);
  return spec;
}

Value experts(LayerBuilder& layer, Value x, const Hybrid& spec) {
  const std::int64_t width = spec.latent > 0 ? spec.latent : spec.hidden;
  const auto linear = [&](Value from, const Linear& whole) { return layer.linear(from, whole); };
  const Value scores = linear(x,
                              {.name = "mixer.gate",
                               .in = spec.hidden,
                               .out = spec.moe.experts,
                               .component = Component::router});
  const auto latent = [&](Value from, std::string_view name, std::int64_t in, std::int64_t out) {
    return linear(from, {.name = name, .in = in, .out = out, .bias = spec.mlp.bias});
  };
  const auto routed = [&](Value from, std::string_view name, std::int64_t in, std::int64_t out) {
    return linear(from,
                  {.name = name,
                   .in = in,
                   .out = out,
                   .experts = spec.moe.experts,
                   .active = spec.moe.active});
  };
  Value y = spec.latent > 0 ? latent(x, "mixer.fc1_latent_proj", spec.hidden, width) : x;
  y = routed(y, "mixer.experts.up_proj", width, spec.moe.ffn);
  y = layer.product(routed(y, "mixer.experts.down_proj", spec.moe.ffn, width), scores);
  if (spec.latent > 0) y = latent(y, "mixer.fc2_latent_proj", width, spec.hidden);
  return layer.sum(y, mlp_block(layer, x, spec.shared));
}

Value describe(LayerBuilder& layer, Value x, const Hybrid& spec, int kind) {
  const Value y = norm(layer, x, "norm", spec.hidden);
  switch (kind) {
    case Kind::mamba:
      return layer.sum(x, mamba2_block(layer, y, spec.mamba));
    case Kind::attention:
      return layer.sum(x, attention_block(layer, y, spec.attention));
    case Kind::mlp:
      return layer.sum(x, mlp_block(layer, y, spec.mlp));
    default:
      return layer.sum(x, experts(layer, y, spec));
  }
}

void fill_facts(Model& model, const Hybrid& spec, const std::vector<int>& kinds) {
  const auto count = [&](int kind) { return std::count(kinds.begin(), kinds.end(), kind); };
  ModelFacts& facts = model.facts;
  facts.scan_layers = count(Kind::mamba);
  facts.hybrid = true;
  if (count(Kind::moe) == 0) return;
  facts.experts = spec.moe.experts;
  facts.experts_active = spec.moe.active;
}

Model build(const Config& config) {
  const Hybrid spec = read_hybrid(config);
  const std::vector<int> kinds = read_kinds(config,
                                            {"layers_block_type", "layer_types"},
                                            config.text_or({"hybrid_override_pattern"}, "ME*-"));
  const DecoderFrame frame{.embed = "embeddings",
                           .final_norm = "norm_f",
                           .hidden = spec.hidden,
                           .vocab = config.size_or({"vocab_size"}, 131072)};  // never tied
  Decoder sizes;
  sizes.layers = static_cast<std::int64_t>(kinds.size());
  sizes.attention = spec.attention;
  if (!check_sizes(config, sizes)) return {};
  ModelBuilder builder;
  open_decoder(builder, frame);
  builder.layers("model.layers.", kinds, [&](LayerBuilder& layer, int kind) {
    layer.output(describe(layer, LayerBuilder::input(), spec, kind));
  });
  const std::int64_t predictions = config.count_or({"num_nextn_predict_layers"}, 0);
  const auto further = read_kinds(
      config, {"mtp_layers_block_type"}, config.text_or({"mtp_hybrid_override_pattern"}, "*E"));
  if (predictions > 0) {
    add_predictions(builder, sizes.layers, predictions, frame, [&](LayerBuilder& layer, Value x) {
      for (const int kind : further) x = describe(layer, x, spec, kind);
      return x;
    });
  }
  close_decoder(builder, frame);
  const bool sparse = std::count(kinds.begin(), kinds.end(), Kind::moe) > 0;
  set_facts(builder.model,
            spec.attention,
            sizes.layers,
            sparse ? spec.moe.ffn : spec.mlp.ffn,
            /*gated=*/false,
            frame.vocab,
            frame.tied);
  fill_facts(builder.model, spec, kinds);
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_nemotron_h{
    .name = "nemotron_h",
    .help = "Nemotron-H, Nano 2, Nemotron 3: Mamba-2, attention, MLPs and experts in one stack",
    .types = "nemotron_h NemotronHForCausalLM",
    .build = build,
    .random_config = {.recurrent = true},
    // h = 8, V = 32, s = 4. Mamba-2: 2 heads of 4, 1 group of state 2, kernel 3: in_proj 8*(8 + 12
    // + 2) = 176, convolution 3*12 + 12, dt, A, D 6, norm 8, out_proj 64. Attention: 2 heads of 4,
    // 1 key head: 192. MLP 2*8*16 = 256. Experts: router 32, 4 of 2*8*4 = 64, shared 2*8*4 = 64.
    // Parameters: 512 + 302 + 192 + 256 + 352 + norms 5*8 = 1654. Per token, forward: 2*(240 + 36 +
    // 192 + 256 + 32 + 2*64 + 64 + 256) = 2408, scan 7*8*2 = 112; attention 10 pairs x 2 heads x
    // 2*(4+4) = 320. Training: 3*(4*2520 + 320).
    .example = {.config = R"({"model_type": "nemotron_h", "hidden_size": 8, "vocab_size": 32,
                             "hybrid_override_pattern": "M*-E", "mamba_num_heads": 2,
                             "mamba_head_dim": 4, "n_groups": 1, "ssm_state_size": 2,
                             "conv_kernel": 3, "num_attention_heads": 2, "num_key_value_heads": 1,
                             "head_dim": 4, "intermediate_size": 16, "n_routed_experts": 4,
                             "num_experts_per_tok": 2, "moe_intermediate_size": 4,
                             "moe_shared_expert_intermediate_size": 4})",
                .parameters = 1654,
                .seq_len = 4,
                .training_flops = 31200}};

}  // namespace flopmeter
