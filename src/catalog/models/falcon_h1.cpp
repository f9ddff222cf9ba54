// SPDX-License-Identifier: Apache-2.0
//
// Falcon-H1, whose layers have Mamba-2 and attention in parallel, and Bamba and Granite 4, whose
// layers have one of them; a gated MLP follows, in Granite 4 with or without experts.
#include "../blocks/moe_block.h"
#include "../blocks/recurrent_block.h"

#include <flopmeter/catalog/model_family.h>

#include <algorithm>

namespace flopmeter {
namespace {

enum Kind : int { mamba, attention, both };

constexpr Mamba2Names names{.in_proj = "mamba.in_proj",
                            .conv = "mamba.conv1d",
                            .dt_bias = "mamba.dt_bias",
                            .a_log = "mamba.A_log",
                            .d = "mamba.D",
                            .scan = "mamba",
                            .norm = "mamba.norm",
                            .out_proj = "mamba.out_proj"};

struct Hybrid {
  Decoder base;
  MoeBlock moe;  ///< no experts: the MLP of `base`
  Mamba2Block mamba;
  std::vector<int> kinds;
};

/// The mixer is `mamba_expand` times as wide as the model, in Falcon-H1 `mamba_d_ssm`.
std::int64_t read_inner(const Config& config, bool parallel, std::int64_t hidden) {
  const std::int64_t expanded = product(config, config.size_or({"mamba_expand"}, 2), hidden);
  if (!parallel) return expanded;
  return config.size_or({"mamba_d_ssm"}, config.is_null("mamba_d_ssm") ? expanded : 1024);
}

Mamba2Block read_mamba(const Config& config, bool parallel, std::int64_t hidden) {
  const std::int64_t inner = read_inner(config, parallel, hidden);
  const std::int64_t heads = config.size_or({"mamba_n_heads"}, 128);
  if (inner % heads != 0) config.fail("the mixer's width is not a multiple of 'mamba_n_heads'");
  const bool bias = config.flag_or({"mamba_proj_bias"}, false);
  Mamba2Block spec{.hidden = hidden,
                   .heads = heads,
                   .head_dim = std::max<std::int64_t>(inner / heads, 1),
                   .groups = config.size_or({"mamba_n_groups"}, 1),
                   .state = config.size_or({"mamba_d_state"}, 256),
                   .kernel = config.size_or({"mamba_d_conv"}, 4),
                   .bias = bias,
                   .out_bias = parallel ? config.flag_or({"projectors_bias"}, false) : bias,
                   .conv_bias = config.flag_or({"mamba_conv_bias"}, true),
                   .names = names};
  if (parallel && !config.flag_or({"mamba_rms_norm"}, false)) spec.names.norm = "";
  check_mamba2(config, spec);
  return spec;
}

std::vector<int> read_kinds(const Config& config, std::int64_t layers, bool granite) {
  std::vector<int> kinds(static_cast<std::size_t>(layers), Kind::mamba);
  for (const std::int64_t layer : config.counts({"attn_layer_indices"})) {
    if (layer < layers) kinds[static_cast<std::size_t>(layer)] = Kind::attention;
  }
  const auto types = config.texts({"layer_types", "layers_block_type"});
  if (!granite || types.empty()) return kinds;
  if (types.size() != kinds.size())
    config.fail("key 'layer_types' must have one type per layer (num_hidden_layers)");
  for (std::size_t i = 0; i < std::min(types.size(), kinds.size()); ++i)
    kinds[i] =
        types[i] == "attention" || types[i] == "full_attention" ? Kind::attention : Kind::mamba;
  return kinds;
}

/// The MLP, which Granite 4 calls shared because experts may run in addition to it.
void read_granite_mlp(const Config& config, Hybrid& spec) {
  MlpBlock& mlp = spec.base.mlp;
  const std::int64_t expert_ffn = config.size_or({"intermediate_size"}, 11008);
  mlp.ffn = config.size_or({"shared_intermediate_size"}, 1024);
  mlp.gate = "";
  mlp.up = "shared_mlp.input_linear";
  mlp.down = "shared_mlp.output_linear";
  if (config.count_or({"num_local_experts"}, 8) == 0) return;
  spec.moe = {.hidden = mlp.hidden,
              .ffn = expert_ffn,
              .router = "block_sparse_moe.router",
              .gate_up = "block_sparse_moe.experts.gate_up_proj",
              .down = "block_sparse_moe.experts.down_proj",
              .shared_ffn = mlp.ffn,
              .shared_gate_proj = mlp.gate,
              .shared_up_proj = mlp.up,
              .shared_down_proj = mlp.down};
  read_experts(config, spec.moe, {"num_local_experts"}, 8, 2);
}

Hybrid read(const Config& config) {
  const bool parallel = is_type(config, "falcon_h1", "FalconH1ForCausalLM");
  const bool granite = is_type(config, "granitemoehybrid", "GraniteMoeHybridForCausalLM");
  Hybrid spec;
  Decoder& base = spec.base;
  base.layers = config.size_or({"num_hidden_layers"}, 32);
  const std::int64_t hidden = config.size_or({"hidden_size"}, 4096);
  const std::int64_t heads = config.size_or({"num_attention_heads"}, 32);
  const std::int64_t kv = granite || config.is_null("num_key_value_heads") ? heads : 8;
  set_sizes(base,
            hidden,
            heads,
            config.size_or({"num_key_value_heads"}, kv),
            config.size_or({"intermediate_size"}, 14336));
  if (!granite) base.attention.head_dim = config.size_or({"head_dim"}, base.attention.head_dim);
  base.attention.qkv_bias = base.attention.out_bias = config.flag_or({"attention_bias"}, false);
  base.frame.vocab = config.size_or({"vocab_size"}, granite ? 32000 : 128000);
  base.frame.tied = config.flag_or({"tie_word_embeddings"}, false);
  if (granite) {
    read_granite_mlp(config, spec);
  } else {
    base.mlp.bias = config.flag_or({"mlp_bias"}, false);
    base.mlp.gate = "feed_forward.gate_proj";
    base.mlp.up = "feed_forward.up_proj";
    base.mlp.down = "feed_forward.down_proj";
    base.norms.before_mlp = "pre_ff_layernorm";
    base.frame.final_norm = "final_layernorm";
  }
  spec.mamba = read_mamba(config, parallel, hidden);
  if (!check_sizes(config, base)) return spec;
  spec.kinds = read_kinds(config, base.layers, granite);
  if (parallel) std::fill(spec.kinds.begin(), spec.kinds.end(), int{Kind::both});
  return spec;
}

void describe(LayerBuilder& layer, const Hybrid& spec, int kind) {
  const std::int64_t hidden = spec.base.frame.hidden;
  Value x = LayerBuilder::input();
  const Value first = norm(layer, x, "input_layernorm", hidden);
  if (kind != Kind::attention) x = layer.sum(x, mamba2_block(layer, first, spec.mamba));
  if (kind != Kind::mamba) x = layer.sum(x, attention_block(layer, first, spec.base.attention));
  const Value second = norm(layer, x, spec.base.norms.before_mlp, hidden);
  layer.output(layer.sum(x,
                         spec.moe.experts > 0 ? moe_block(layer, second, spec.moe)
                                              : mlp_block(layer, second, spec.base.mlp)));
}

Model build(const Config& config) {
  const Hybrid spec = read(config);
  if (!config.status()) return {};
  const Decoder& base = spec.base;
  ModelBuilder builder;
  open_decoder(builder, base.frame);
  builder.layers("model.layers.", spec.kinds, [&](LayerBuilder& layer, int kind) {
    describe(layer, spec, kind);
  });
  close_decoder(builder, base.frame);
  set_facts(builder.model,
            base.attention,
            base.layers,
            spec.moe.experts > 0 ? spec.moe.ffn : base.mlp.ffn,
            base.mlp.gated,
            base.frame.vocab,
            base.frame.tied);
  ModelFacts& facts = builder.model.facts;
  facts.experts = spec.moe.experts;
  facts.experts_active = spec.moe.active;
  facts.scan_layers =
      base.layers - std::count(spec.kinds.begin(), spec.kinds.end(), int{Kind::attention});
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_falcon_h1{
    .name = "falcon_h1",
    .help = "Falcon-H1, Bamba, Granite 4: Mamba-2 in parallel with attention or instead of it",
    .types =
        "falcon_h1 FalconH1ForCausalLM bamba BambaForCausalLM granitemoehybrid "
        "GraniteMoeHybridForCausalLM",
    .build = build,
    .random_config = {.recurrent = true},
    // One layer, h = 8, V = 32, s = 4. Mamba-2: 2 heads of 4, 1 group of state 2, kernel 3: in_proj
    // 8*(8 + 12 + 2) = 176, convolution 3*12 + 12, dt, A, D 6, out_proj 64. Attention: 2 heads of
    // 4, 1 key head: 192. MLP 3*8*16 = 384. Parameters: 512 + 294 + 192 + 384 + norms 3*8 = 1406.
    // Per token, forward: 2*(240 + 36 + 192 + 384 + 256) = 2216, scan 7*8*2 = 112; attention 10
    // pairs x 2 heads x 2*(4+4) = 320. Training: 3*(4*2328 + 320).
    .example = {.config = R"({"model_type": "falcon_h1", "hidden_size": 8, "vocab_size": 32,
                             "num_hidden_layers": 1, "mamba_d_ssm": 8, "mamba_n_heads": 2,
                             "mamba_d_state": 2, "mamba_d_conv": 3, "num_attention_heads": 2,
                             "num_key_value_heads": 1, "intermediate_size": 16})",
                .parameters = 1406,
                .seq_len = 4,
                .training_flops = 28896}};

}  // namespace flopmeter
