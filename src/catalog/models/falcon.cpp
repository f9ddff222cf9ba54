// SPDX-License-Identifier: Apache-2.0
//
// Falcon: one key-value head or groups of them, attention and MLP in parallel in most sizes.  Its
// implementation always passes a mask tensor.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  Decoder decoder;
  decoder.layers = config.size({"num_hidden_layers", "n_layer"});
  decoder.layer_prefix = "transformer.h.";
  const std::int64_t hidden = config.size({"hidden_size", "n_embed"});
  const std::int64_t heads = config.size({"num_attention_heads", "n_head"});
  const bool grouped = config.flag_or({"new_decoder_architecture"}, config.has("n_head_kv"));
  const std::int64_t single = config.flag_or({"multi_query"}, true) ? 1 : heads;
  const std::int64_t kv = grouped ? config.size_or({"num_kv_heads", "n_head_kv"}, heads) : single;
  set_sizes(decoder, hidden, heads, kv, config.size_or({"ffn_hidden_size"}, 4 * hidden));
  decoder.frame = {.prefix = "transformer.",
                   .embed = "word_embeddings",
                   .final_norm = "ln_f",
                   .hidden = hidden,
                   .vocab = config.size({"vocab_size"}),
                   .tied = config.flag_or({"tie_word_embeddings"}, true),
                   .norm_bias = true};
  const bool bias = config.flag_or({"bias"}, false);
  decoder.attention.qkv_bias = decoder.attention.out_bias = decoder.mlp.bias = bias;
  decoder.attention.mask_tensor = true;
  decoder.attention.names = {
      .q = "self_attention.query_key_value", .k = "", .v = "", .o = "self_attention.dense"};
  decoder.mlp.gated = false;
  decoder.mlp.up = "mlp.dense_h_to_4h";
  decoder.mlp.down = "mlp.dense_4h_to_h";
  decoder.parallel = config.flag_or({"parallel_attn"}, true);
  const std::int64_t norms = config.size_or({"num_ln_in_parallel_attn"}, grouped ? 2 : 1);
  if (decoder.parallel && norms == 2) {
    decoder.norms = {.before_attention = "ln_attn", .before_mlp = "ln_mlp"};
  } else if (decoder.parallel) {
    decoder.norms.before_mlp = "";
  }
  decoder.dropout = config.number_or({"hidden_dropout"}, 0);
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_falcon{
    .name = "falcon",
    .help = "Falcon: multi-query or grouped keys, parallel layers, plain MLP",
    .types = "falcon FalconForCausalLM RefinedWeb RefinedWebModel RWForCausalLM",
    .build = build,
    .random_config = {.gated = false, .keys = R"("new_decoder_architecture": true)"},
    // One layer, h = 8, n = 2, one key-value head, d = 4, f = 4h = 32, V = 32, s = 4.
    // Parameters: embedding, tied to the head, 256; query_key_value 8*(8 + 2*4) = 128; dense 64;
    // MLP 2*256; norms 2*16.
    // Per token, forward: 2*(192 + 512 + 256) = 1920; attention: 10 pairs x 2 heads x 2*(4+4) =
    // 320. Training: 3*(4*1920 + 320).
    .example = {.config = R"({"model_type": "falcon", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "vocab_size": 32})",
                .parameters = 992,
                .seq_len = 4,
                .training_flops = 24000}};

}  // namespace flopmeter
