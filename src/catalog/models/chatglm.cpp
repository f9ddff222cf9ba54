// SPDX-License-Identifier: Apache-2.0
//
// ChatGLM 1 to 3 and GLM-4-9B with their own keys.  The first, identified by `inner_hidden_size`,
// is a plain model with biases throughout and a tied head; the others look like LLaMA with fused
// projections, and all that were released have biases there.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Decoder read_first(const Config& config) {
  Decoder decoder;
  const std::int64_t hidden = config.size({"hidden_size"});
  const std::int64_t heads = config.size({"num_attention_heads"});
  set_sizes(decoder, hidden, heads, heads, config.size({"inner_hidden_size"}));
  decoder.layer_prefix = "transformer.layers.";
  decoder.frame = {.prefix = "transformer.",
                   .embed = "word_embeddings",
                   .final_norm = "final_layernorm",
                   .hidden = hidden,
                   .vocab = config.size({"vocab_size"}),
                   .tied = true,
                   .norm_bias = true};
  decoder.attention.qkv_bias = decoder.attention.out_bias = decoder.mlp.bias = true;
  decoder.attention.names = {
      .q = "attention.query_key_value", .k = "", .v = "", .o = "attention.dense"};
  decoder.mlp.gated = false;
  return decoder;
}

Decoder read_later(const Config& config) {
  Decoder decoder;
  const std::int64_t hidden = config.size({"hidden_size"});
  const std::int64_t heads = config.size({"num_attention_heads"});
  const bool grouped =
      config.flag_or({"multi_query_attention"}, config.has("multi_query_group_num"));
  const std::int64_t kv = grouped ? config.size_or({"multi_query_group_num"}, 1) : heads;
  set_sizes(decoder, hidden, heads, kv, config.size({"ffn_hidden_size"}));
  decoder.layer_prefix = "transformer.encoder.layers.";
  decoder.frame = {.prefix = "transformer.",
                   .embed = "embedding.word_embeddings",
                   .final_norm = "encoder.final_layernorm",
                   .head = "transformer.output_layer",
                   .hidden = hidden,
                   .vocab = config.size({"padded_vocab_size", "vocab_size"}),
                   .tied = config.flag_or({"tie_word_embeddings"}, false)};
  const bool bias = config.flag_or({"add_bias_linear"}, false);
  decoder.attention.head_dim = config.size_or({"kv_channels"}, hidden / heads);
  decoder.attention.qkv_bias = bias || config.flag_or({"add_qkv_bias"}, true);
  decoder.attention.out_bias = decoder.mlp.bias = bias;
  decoder.attention.names = {
      .q = "self_attention.query_key_value", .k = "", .v = "", .o = "self_attention.dense"};
  decoder.mlp.gate = "";
  return decoder;
}

Model build(const Config& config) {
  Decoder decoder = config.has("inner_hidden_size") ? read_first(config) : read_later(config);
  decoder.layers = config.size({"num_layers"});
  decoder.mlp.up = "mlp.dense_h_to_4h";
  decoder.mlp.down = "mlp.dense_4h_to_h";
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_chatglm{
    .name = "chatglm",
    .help = "ChatGLM 1-3, GLM-4-9B (remote code): grouped keys, gated MLP; the first one plain",
    .types = "chatglm ChatGLMModel ChatGLMForConditionalGeneration",
    .build = build,
    .random_config = {.keys = R"("multi_query_attention": true)"},
    // One layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 4.
    // Parameters: embedding and head 2*256; query_key_value 8*(8 + 2*4) + 16; dense 64;
    // dense_h_to_4h 256; dense_4h_to_h 128; norms 3*8.
    // Per token, forward: 2*(192 + 384 + 256) = 1664; attention: 10 pairs x 2 heads x 2*(4+4) =
    // 320. Training: 3*(4*1664 + 320).
    .example = {.config = R"({"model_type": "chatglm", "hidden_size": 8, "num_layers": 1,
                             "num_attention_heads": 2, "multi_query_attention": true,
                             "multi_query_group_num": 1, "kv_channels": 4, "ffn_hidden_size": 16,
                             "add_qkv_bias": true, "padded_vocab_size": 32})",
                .parameters = 1128,
                .seq_len = 4,
                .training_flops = 20928}};

}  // namespace flopmeter
