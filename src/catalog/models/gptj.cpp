// SPDX-License-Identifier: Apache-2.0
//
// GPT-J: attention and MLP in parallel after one norm; attention without biases, the head with
// one.
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
  set_sizes(decoder, hidden, heads, heads, config.size_or({"n_inner"}, 4 * hidden));
  decoder.frame = {.prefix = "transformer.",
                   .embed = "wte",
                   .final_norm = "ln_f",
                   .hidden = hidden,
                   .vocab = config.size({"vocab_size"}),
                   .tied = config.flag_or({"tie_word_embeddings"}, false),
                   .norm_bias = true,
                   .head_bias = true};
  decoder.attention.names = {
      .q = "attn.q_proj", .k = "attn.k_proj", .v = "attn.v_proj", .o = "attn.out_proj"};
  decoder.mlp.gated = false;
  decoder.mlp.bias = true;
  decoder.mlp.up = "mlp.fc_in";
  decoder.mlp.down = "mlp.fc_out";
  decoder.norms = {.before_attention = "ln_1", .before_mlp = ""};
  decoder.parallel = true;
  decoder.dropout = config.number_or({"resid_pdrop"}, 0);
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_gptj{
    .name = "gptj",
    .help = "GPT-J: parallel layers, rotary positions, plain MLP",
    .types = "gptj GPTJForCausalLM",
    .build = build,
    .random_config = {.grouped = false, .gated = false},
    // One layer, h = 8, n = 2, d = 4, f = 4h = 32, V = 32, s = 4.
    // Parameters: embedding 256; head 256 + 32; attention 4*64; MLP 256 + 32 and 256 + 8; norms
    // 2*16. Per token, forward: 2*(256 + 512 + 256) = 2048; attention: 10 pairs x 2 heads x 2*(4+4)
    // = 320. Training: 3*(4*2048 + 320).
    .example = {.config = R"({"model_type": "gptj", "n_embd": 8, "n_layer": 1, "n_head": 2,
                             "vocab_size": 32})",
                .parameters = 1384,
                .seq_len = 4,
                .training_flops = 25536}};

}  // namespace flopmeter
