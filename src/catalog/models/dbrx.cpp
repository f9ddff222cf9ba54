// SPDX-License-Identifier: Apache-2.0
//
// DBRX: fused query-key-value, LayerNorm without biases, fine-grained experts in every layer.
#include "../blocks/moe_block.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  SparseDecoder spec;
  Decoder& base = spec.base;
  base.layers = config.size_or({"n_layers", "num_hidden_layers"}, 24);
  base.layer_prefix = "transformer.blocks.";
  const std::int64_t hidden = config.size_or({"d_model", "hidden_size"}, 2048);
  const Config ffn = config.child("ffn_config");
  set_sizes(base,
            hidden,
            config.size_or({"n_heads", "num_attention_heads"}, 16),
            config.child("attn_config").size_or({"kv_n_heads"}, 1),
            ffn.size_or({"ffn_hidden_size"}, 3584));
  base.frame = {.prefix = "transformer.",
                .embed = "wte",
                .final_norm = "norm_f",
                .hidden = hidden,
                .vocab = config.size_or({"vocab_size"}, 32000),
                .tied = config.flag_or({"tie_word_embeddings"}, false)};
  base.attention.names = {
      .q = "norm_attn_norm.attn.Wqkv", .k = "", .v = "", .o = "norm_attn_norm.attn.out_proj"};
  base.norms = {.before_attention = "norm_attn_norm.norm_1", .before_mlp = "norm_attn_norm.norm_2"};
  base.dropout = config.number_or({"resid_pdrop"}, 0);
  spec.moe.hidden = hidden;
  spec.moe.ffn = base.mlp.ffn;
  spec.moe.router = "ffn.router.layer";
  spec.moe.gate_up = "ffn.experts.mlp.w1";
  spec.moe.down = "ffn.experts.mlp.w2";
  read_experts(ffn, spec.moe, {"moe_num_experts"}, 4, 1, {"moe_top_k"});
  if (base.layers <= most_layers) spec.sparse.assign(static_cast<std::size_t>(base.layers), true);
  return build_sparse_decoder(config, spec);
}

}  // namespace

extern constinit const ModelFamily model_dbrx{
    .name = "dbrx",
    .help = "DBRX: fused query-key-value, grouped keys, experts in every layer",
    .types = "dbrx DbrxForCausalLM",
    .build = build,
    .random_config = {.experts = RandomConfig::Experts::of_mlp_width},
    // One layer, h = 8, n = 2, g = 1, d = 4, V = 32, 4 experts of f = 16 and 2 active, s = 4.
    // Parameters: embedding and head 512; Wqkv 8*(8 + 2*4) = 128; out_proj 64; router 32; experts
    // 4*384; norms 24: 2296. Per token, forward: 2*(192 + 32 + 2*384 + 256) = 2496; attention 10
    // pairs x 2 heads x 2*(4+4) = 320. Training: 3*(4*2496 + 320).
    .example = {.config = R"({"model_type": "dbrx", "d_model": 8, "n_layers": 1, "n_heads": 2,
                             "vocab_size": 32, "attn_config": {"kv_n_heads": 1},
                             "ffn_config": {"ffn_hidden_size": 16, "moe_num_experts": 4,
                                            "moe_top_k": 2}})",
                .parameters = 2296,
                .seq_len = 4,
                .training_flops = 30912}};

}  // namespace flopmeter
