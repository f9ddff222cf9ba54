// SPDX-License-Identifier: Apache-2.0
//
// Apertus: normalized queries and keys, an MLP without a gate whose activation (xIELU) has two
// parameters.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

void describe(LayerBuilder& layer, const Decoder& decoder, bool xielu) {
  const std::int64_t hidden = decoder.frame.hidden;
  Value x = LayerBuilder::input();
  const Value first = norm(layer, x, "attention_layernorm", hidden);
  x = layer.sum(x, attention_block(layer, first, decoder.attention));
  const Value second = norm(layer, x, "feedforward_layernorm", hidden);
  Value inner = layer.linear(second, {.name = "mlp.up_proj", .in = hidden, .out = decoder.mlp.ffn});
  if (xielu) {
    inner = layer.parameters(inner, "mlp.act_fn.alpha_p", 1);
    inner = layer.parameters(inner, "mlp.act_fn.alpha_n", 1);
  }
  layer.output(layer.sum(
      x, layer.linear(inner, {.name = "mlp.down_proj", .in = decoder.mlp.ffn, .out = hidden})));
}

Model build(const Config& config) {
  Decoder decoder = read_decoder(config);
  AttentionBlock& attention = decoder.attention;
  attention.qkv_bias = attention.out_bias = config.flag_or({"attention_bias"}, false);
  attention.q_norm = "self_attn.q_norm";
  attention.k_norm = "self_attn.k_norm";
  if (!check_sizes(config, decoder)) return {};
  const bool xielu = config.text_or({"hidden_act"}, "xielu") == "xielu";
  ModelBuilder builder;
  open_decoder(builder, decoder.frame);
  builder.layers(decoder.layer_prefix, decoder.layers, [&](LayerBuilder& layer) {
    describe(layer, decoder, xielu);
  });
  close_decoder(builder, decoder.frame);
  set_facts(builder.model,
            attention,
            decoder.layers,
            decoder.mlp.ffn,
            /*gated=*/false,
            decoder.frame.vocab,
            decoder.frame.tied);
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_apertus{
    .name = "apertus",
    .help = "Apertus: normalized queries and keys, MLP with xIELU and no gate",
    .types = "apertus ApertusForCausalLM",
    .build = build,
    .random_config = {.gated = false},
    // One layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 4. Parameters: embedding and head
    // 2*256; q, o 64 each; k, v 32 each; norms of queries and keys 8; MLP 2*128 + 2; norms 3*8. Per
    // token, forward: 2*(192 + 256 + 256) = 1408; attention: 10 pairs x 2 heads x 2*(4+4) = 320.
    // Training: 3*(4*1408 + 320).
    .example = {.config = R"({"model_type": "apertus", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "vocab_size": 32})",
                .parameters = 994,
                .seq_len = 4,
                .training_flops = 17856}};

}  // namespace flopmeter
