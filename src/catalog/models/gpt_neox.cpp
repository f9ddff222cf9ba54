// SPDX-License-Identifier: Apache-2.0
//
// GPT-NeoX and Pythia: attention and MLP in parallel, each after its own norm.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  Decoder decoder = read_decoder(config);
  const bool bias = config.flag_or({"attention_bias"}, true);
  decoder.layer_prefix = "gpt_neox.layers.";
  decoder.frame.prefix = "gpt_neox.";
  decoder.frame.embed = "embed_in";
  decoder.frame.final_norm = "final_layer_norm";
  decoder.frame.norm_bias = true;
  decoder.attention.qkv_bias = decoder.attention.out_bias = bias;
  decoder.attention.names = {
      .q = "attention.query_key_value", .k = "", .v = "", .o = "attention.dense"};
  decoder.mlp.gated = false;
  decoder.mlp.bias = true;
  decoder.mlp.up = "mlp.dense_h_to_4h";
  decoder.mlp.down = "mlp.dense_4h_to_h";
  decoder.parallel = config.flag_or({"use_parallel_residual"}, true);
  decoder.dropout = config.number_or({"hidden_dropout"}, 0);
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_gpt_neox{
    .name = "gpt_neox",
    .help = "GPT-NeoX, Pythia: parallel layers, rotary positions, biases, plain MLP",
    .types = "gpt_neox GPTNeoXForCausalLM",
    .build = build,
    .random_config = {.grouped = false, .gated = false},
    // One layer, h = 8, n = 2, d = 4, f = 16, V = 32, s = 4.
    // Parameters: embedding and head 2*256; query_key_value 192 + 24; dense 64 + 8; MLP 128 + 16
    // and 128 + 8; norms 3*16. Per token, forward: 2*(256 + 256 + 256) = 1536; attention: 10 pairs
    // x 2 heads x 2*(4+4) = 320. Training: 3*(4*1536 + 320).
    .example = {.config = R"({"model_type": "gpt_neox", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 32})",
                .parameters = 1128,
                .seq_len = 4,
                .training_flops = 19392}};

}  // namespace flopmeter
