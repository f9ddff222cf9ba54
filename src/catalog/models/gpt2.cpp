// SPDX-License-Identifier: Apache-2.0
//
// GPT-2, GPT-3 in its sizes, and StarCoder, whose heads share one key and value: learned positions,
// LayerNorm, fused query-key-value, biases throughout.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  Decoder decoder;
  decoder.layers = config.size({"n_layer", "num_hidden_layers"});
  decoder.layer_prefix = "transformer.h.";
  const std::int64_t hidden = config.size({"n_embd", "hidden_size"});
  const std::int64_t heads = config.size({"n_head", "num_attention_heads"});
  const bool shared = is_type(config, "gpt_bigcode", "GPTBigCodeForCausalLM") &&
                      config.flag_or({"multi_query"}, true);
  set_sizes(decoder, hidden, heads, shared ? 1 : heads, config.size_or({"n_inner"}, 4 * hidden));
  decoder.frame = {.prefix = "transformer.",
                   .embed = "wte",
                   .embed_positions = "wpe",
                   .final_norm = "ln_f",
                   .hidden = hidden,
                   .vocab = config.size({"vocab_size"}),
                   .positions = config.size_or({"n_positions", "max_position_embeddings"}, 1024),
                   .tied = config.flag_or({"tie_word_embeddings"}, true),
                   .norm_bias = true};
  decoder.attention.qkv_bias = decoder.attention.out_bias = true;
  decoder.attention.names = {.q = "attn.c_attn", .k = "", .v = "", .o = "attn.c_proj"};
  decoder.mlp.gated = false;
  decoder.mlp.bias = true;
  decoder.mlp.up = "mlp.c_fc";
  decoder.mlp.down = "mlp.c_proj";
  decoder.norms = {.before_attention = "ln_1", .before_mlp = "ln_2"};
  decoder.dropout = config.number_or({"resid_pdrop"}, 0.1);
  if (config.flag_or({"add_cross_attention"}, false))
    config.fail(
        "key 'add_cross_attention' is true, expected false: only the decoder alone is known");
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_gpt2{
    .name = "gpt2",
    .help = "GPT-2, GPT-3, StarCoder: learned positions, LayerNorm, biases, plain MLP",
    .types = "gpt2 GPT2LMHeadModel GPT3 gpt_bigcode GPTBigCodeForCausalLM",
    .build = build,
    .random_config = {.grouped = false, .gated = false},
    // One layer, h = 8, n = 2, d = 4, f = 4h = 32, V = 32, 16 positions, s = 4.
    // Parameters: embedding, tied to the head, 256; positions 128; c_attn 192 + 24; c_proj 64 + 8;
    // MLP 256 + 32 and 256 + 8; norms 3*16.
    // Per token, forward: 2*(256 + 512 + 256) = 2048; attention: 10 pairs x 2 heads x 2*(4+4) =
    // 320. Training: 3*(4*2048 + 320).
    .example = {.config = R"({"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 2,
                             "n_positions": 16, "vocab_size": 32})",
                .parameters = 1272,
                .seq_len = 4,
                .training_flops = 25536}};

}  // namespace flopmeter
