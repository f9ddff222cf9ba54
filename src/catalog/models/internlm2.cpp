// SPDX-License-Identifier: Apache-2.0
//
// InternLM 2: LLaMA with fused query-key-value and its own names.  Files specify whether there are
// biases; no release has any.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  Decoder decoder = read_decoder(config);
  decoder.frame.embed = "tok_embeddings";
  decoder.frame.head = "output";
  decoder.attention.qkv_bias = decoder.attention.out_bias = config.flag_or({"bias"}, false);
  decoder.attention.names = {.q = "attention.wqkv", .k = "", .v = "", .o = "attention.wo"};
  decoder.mlp.gate = "feed_forward.w1";
  decoder.mlp.up = "feed_forward.w3";
  decoder.mlp.down = "feed_forward.w2";
  decoder.norms = {.before_attention = "attention_norm", .before_mlp = "ffn_norm"};
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_internlm2{
    .name = "internlm2",
    .help = "InternLM 2: fused query-key-value, grouped keys, gated MLP",
    .types = "internlm2 InternLM2ForCausalLM",
    .build = build,
    // One layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 4.
    // Parameters: embedding and head 2*256; wqkv 8*(8 + 2*4) = 128; wo 64; MLP 3*128; norms 3*8.
    // Per token, forward: 2*(192 + 384 + 256) = 1664; attention: 10 pairs x 2 heads x 2*(4+4) =
    // 320. Training: 3*(4*1664 + 320).
    .example = {.config = R"({"model_type": "internlm2", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 16,
                             "vocab_size": 32, "bias": false})",
                .parameters = 1112,
                .seq_len = 4,
                .training_flops = 20928}};

}  // namespace flopmeter
