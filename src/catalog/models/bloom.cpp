// SPDX-License-Identifier: Apache-2.0
//
// BLOOM: ALiBi positions, a norm after the embedding, biases throughout, MLP of four times the
// width.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  Decoder decoder;
  decoder.layers = config.size_or({"n_layer", "num_hidden_layers"}, 2);
  decoder.layer_prefix = "transformer.h.";
  const std::int64_t hidden = config.size_or({"n_embed", "hidden_size"}, 64);
  const std::int64_t heads = config.size_or({"n_head", "num_attention_heads"}, 8);
  set_sizes(decoder, hidden, heads, heads, 4 * hidden);
  decoder.frame = {.prefix = "transformer.",
                   .embed = "word_embeddings",
                   .embed_norm = "word_embeddings_layernorm",
                   .final_norm = "ln_f",
                   .hidden = hidden,
                   .vocab = config.size_or({"vocab_size"}, 250880),
                   .tied = config.flag_or({"tie_word_embeddings"}, true),
                   .norm_bias = true};
  decoder.attention.qkv_bias = decoder.attention.out_bias = true;
  decoder.attention.names = {
      .q = "self_attention.query_key_value", .k = "", .v = "", .o = "self_attention.dense"};
  decoder.mlp.gated = false;
  decoder.mlp.bias = true;
  decoder.mlp.up = "mlp.dense_h_to_4h";
  decoder.mlp.down = "mlp.dense_4h_to_h";
  decoder.dropout = config.number_or({"hidden_dropout"}, 0);
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_bloom{
    .name = "bloom",
    .help = "BLOOM: ALiBi, biases, plain MLP",
    .types = "bloom BloomForCausalLM",
    .build = build,
    .random_config = {.grouped = false, .gated = false, .ffn = RandomConfig::Ffn::four_hidden},
    // One layer, h = 8, n = 2, d = 4, f = 4h = 32, V = 32, s = 4.
    // Parameters: embedding, tied to the head, 256; query_key_value 192 + 24; dense 64 + 8;
    // MLP 256 + 32 and 256 + 8; norms 4*16.
    // Per token, forward: 2*(256 + 512 + 256) = 2048; attention: 10 pairs x 2 heads x 2*(4+4) =
    // 320. Training: 3*(4*2048 + 320).
    .example = {.config = R"({"model_type": "bloom", "hidden_size": 8, "n_layer": 1, "n_head": 2,
                             "vocab_size": 32})",
                .parameters = 1160,
                .seq_len = 4,
                .training_flops = 25536}};

}  // namespace flopmeter
