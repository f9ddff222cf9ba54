// SPDX-License-Identifier: Apache-2.0
//
// MPT: ALiBi positions, no bias anywhere, MLP of four times the width.  As in transformers' class,
// `expansion_ratio`, `attn_type` and `no_bias` change nothing.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  Decoder decoder;
  decoder.layers = config.size({"n_layers", "num_hidden_layers"});
  decoder.layer_prefix = "transformer.blocks.";
  const std::int64_t hidden = config.size({"d_model", "hidden_size"});
  const std::int64_t heads = config.size({"n_heads", "num_attention_heads"});
  set_sizes(decoder, hidden, heads, heads, 4 * hidden);
  decoder.frame = {.prefix = "transformer.",
                   .embed = "wte",
                   .final_norm = "norm_f",
                   .hidden = hidden,
                   .vocab = config.size({"vocab_size"}),
                   .tied = config.flag_or({"tie_word_embeddings"}, true)};
  decoder.attention.names = {.q = "attn.Wqkv", .k = "", .v = "", .o = "attn.out_proj"};
  decoder.mlp.gated = false;
  decoder.mlp.up = "ffn.up_proj";
  decoder.mlp.down = "ffn.down_proj";
  decoder.norms = {.before_attention = "norm_1", .before_mlp = "norm_2"};
  decoder.dropout = config.child("attn_config").number_or({"attn_pdrop"}, 0);
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_mpt{
    .name = "mpt",
    .help = "MPT: ALiBi, no biases, plain MLP",
    .types = "mpt MptForCausalLM MPTForCausalLM",
    .build = build,
    .random_config = {.grouped = false, .gated = false, .ffn = RandomConfig::Ffn::four_hidden},
    // One layer, h = 8, n = 2, d = 4, f = 4h = 32, V = 32, s = 4.
    // Parameters: embedding, tied to the head, 256; Wqkv 192; out_proj 64; MLP 2*256; norms 3*8.
    // Per token, forward: 2*(256 + 512 + 256) = 2048; attention: 10 pairs x 2 heads x 2*(4+4) =
    // 320. Training: 3*(4*2048 + 320).
    .example = {.config = R"({"model_type": "mpt", "d_model": 8, "n_layers": 1, "n_heads": 2,
                             "vocab_size": 32})",
                .parameters = 1048,
                .seq_len = 4,
                .training_flops = 25536}};

}  // namespace flopmeter
