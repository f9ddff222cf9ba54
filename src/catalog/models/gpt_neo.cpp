// SPDX-License-Identifier: Apache-2.0
//
// GPT-Neo: GPT-2 with separate projections for query, key, and value, and a window in every
// other layer.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

/// By layer: 1 with a window, 0 without.
std::vector<int> read_local(const Config& config, std::int64_t layers) {
  std::vector<int> local;
  for (const std::string& type : config.texts({"attention_layers"}))
    local.push_back(type == "local" ? 1 : 0);
  if (local.empty()) {
    for (std::int64_t i = 0; i < layers; ++i) local.push_back(i % 2 == 1 ? 1 : 0);
  } else if (static_cast<std::int64_t>(local.size()) != layers) {
    config.fail("key 'attention_layers' does not hold one type for each of num_layers");
  }
  return local;
}

Model build(const Config& config) {
  Decoder decoder;
  decoder.layers = config.size({"num_layers", "num_hidden_layers"});
  decoder.layer_prefix = "transformer.h.";
  const std::int64_t hidden = config.size({"hidden_size"});
  const std::int64_t heads = config.size({"num_heads", "num_attention_heads"});
  set_sizes(decoder, hidden, heads, heads, config.size_or({"intermediate_size"}, 4 * hidden));
  decoder.frame = {.prefix = "transformer.",
                   .embed = "wte",
                   .embed_positions = "wpe",
                   .final_norm = "ln_f",
                   .hidden = hidden,
                   .vocab = config.size({"vocab_size"}),
                   .positions = config.size_or({"max_position_embeddings"}, 2048),
                   .tied = config.flag_or({"tie_word_embeddings"}, true),
                   .norm_bias = true};
  decoder.attention.out_bias = true;
  decoder.attention.names = {.q = "attn.attention.q_proj",
                             .k = "attn.attention.k_proj",
                             .v = "attn.attention.v_proj",
                             .o = "attn.attention.out_proj"};
  decoder.mlp.gated = false;
  decoder.mlp.bias = true;
  decoder.mlp.up = "mlp.c_fc";
  decoder.mlp.down = "mlp.c_proj";
  decoder.norms = {.before_attention = "ln_1", .before_mlp = "ln_2"};
  decoder.dropout = config.number_or({"resid_dropout"}, 0);
  if (!check_sizes(config, decoder)) return {};
  if (!config.is_null("window_size")) {
    decoder.window = config.size_or({"window_size"}, 256);
    decoder.windowed = read_local(config, decoder.layers);
  }
  return config.status() ? build_decoder(config, decoder) : Model{};
}

}  // namespace

extern constinit const ModelFamily model_gpt_neo{
    .name = "gpt_neo",
    .help = "GPT-Neo: learned positions, LayerNorm, plain MLP, a window in every other layer",
    .types = "gpt_neo GPTNeoForCausalLM",
    .build = build,
    .random_config = {.grouped = false, .gated = false, .keys = R"("window_size": null)"},
    // Two layers, the second with a window of 2; h = 8, n = 2, d = 4, f = 4h = 32, V = 32, 16
    // positions, s = 4. Parameters: embedding, tied to the head, 256; positions 128; a layer q, k,
    // v 64 each, out 64 + 8, MLP 256 + 32 and 256 + 8, norms 2*16: 848; last norm 16: 2096. Per
    // token, forward: 2*(2*(256 + 512) + 256) = 3584; attention: 10 pairs, then 7, x 2 heads x
    // 2*(4+4) = 544. Training: 3*(4*3584 + 544).
    .example = {.config = R"({"model_type": "gpt_neo", "hidden_size": 8, "num_layers": 2,
                             "num_heads": 2, "max_position_embeddings": 16, "vocab_size": 32,
                             "window_size": 2})",
                .parameters = 2096,
                .seq_len = 4,
                .training_flops = 44640}};

}  // namespace flopmeter
