// SPDX-License-Identifier: Apache-2.0
//
// Gemma 3: as Gemma 2 with normalized queries and keys, and five layers with a sliding window to
// one without; the larger ones have a SigLIP vision tower, whose output is averaged to a
// fixed number of tokens.  Published files omit the defaults of the class.
#include "../blocks/image_tower.h"
#include "../blocks/text_model.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

bool is_not_nth(std::int64_t layer, std::int64_t pattern) {
  return (layer + 1) % pattern != 0;
}

/// SigLIP, and the projection of its averaged patches.
void add_siglip(ModelBuilder& builder, const Config& whole, std::int64_t hidden) {
  ImageTower tower = read_image_tower(
      whole,
      "siglip_vision_model",
      {.width = 768, .heads = 12, .ffn = 3072, .layers = 12, .patch = 16, .image = 224});
  tower.final_norm = true;
  if (!whole.has("text_config")) tower.pooled = false;  // a list of sizes, without switches
  builder.model.vision = {.kind = VisionPlan::Kind::fixed,
                          .patches = tower.patches,
                          .visual_tokens = whole.size_or({"mm_tokens_per_image"}, 256)};
  add_image_tower(builder, tower);
  builder.once(
      "model.multi_modal_projector.",
      [&](LayerBuilder& layer) {
        const std::int64_t width = tower.layer.width;
        const Value x = norm(layer, LayerBuilder::input(), "mm_soft_emb_norm", width);
        layer.output(vision_linear(layer,
                                   x,
                                   "mm_input_projection_weight",
                                   width,
                                   hidden,
                                   Rows::visual,
                                   /*bias=*/false));
      },
      ModelBuilder::Stream::vision);
}

Model build(const Config& whole) {
  const bool nested = whole.has("text_config");
  const Config config = nested ? whole.child("text_config") : whole;
  Decoder decoder;
  decoder.layers = config.size_or({"num_hidden_layers"}, 26);
  set_sizes(decoder,
            config.size_or({"hidden_size"}, 2304),
            config.size_or({"num_attention_heads"}, 8),
            config.size_or({"num_key_value_heads"}, 4),
            config.size_or({"intermediate_size"}, 9216));
  decoder.frame.vocab = config.size_or({"vocab_size"}, 262208);
  decoder.frame.tied = whole.flag_or({"tie_word_embeddings"}, true);
  decoder.attention.head_dim = config.size_or({"head_dim"}, 256);
  const bool bias = config.flag_or({"attention_bias"}, false);
  decoder.attention.qkv_bias = decoder.attention.out_bias = bias;
  decoder.attention.q_norm = "self_attn.q_norm";
  decoder.attention.k_norm = "self_attn.k_norm";
  decoder.norms = {.before_attention = "input_layernorm",
                   .after_attention = "post_attention_layernorm",
                   .before_mlp = "pre_feedforward_layernorm",
                   .after_mlp = "post_feedforward_layernorm"};
  const bool sees = nested || whole.has("vision_config");
  if (sees) {
    decoder.frame.prefix = "model.language_model.";
    decoder.layer_prefix = "model.language_model.layers.";
  }
  if (!config.is_null("sliding_window")) decoder.window = config.size_or({"sliding_window"}, 4096);
  const std::int64_t pattern =
      config.size_or({"sliding_window_pattern", "_sliding_window_pattern"}, 6);
  decoder.windowed = read_windowed(config, decoder.layers, is_not_nth, pattern);
  if (!sees || !check_sizes(config, decoder)) return build_decoder(config, decoder);
  ModelBuilder builder;
  add_siglip(builder, whole, decoder.frame.hidden);
  add_text_model(builder, decoder);
  builder.model.notes.emplace_back(
      "visual tokens of an image attend to each other in both directions; counted as causal");
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_gemma3{
    .name = "gemma3",
    .help = "Gemma 3: five windowed layers to one, norms on both sides, gated MLP",
    .types = "gemma3_text gemma3 Gemma3ForCausalLM Gemma3ForConditionalGeneration",
    .build = build,
    .random_config = {.keys = R"("sliding_window": null)"},
    // Two layers, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, window 2 in the first, s = 4.
    // Parameters: embedding, tied to the head, 256; a layer: attention 192, q_norm, k_norm 4 each,
    // MLP 384, norms 4*8; norm 8.
    // Per token, forward: 2*(2*576 + 256) = 2816; attention: 7 pairs in the windowed layer and 10
    // in the other x 2 heads x 2*(4+4) = 544. Training: 3*(4*2816 + 544).
    .example = {.config = R"({"model_type": "gemma3_text", "hidden_size": 8, "num_hidden_layers": 2,
                             "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
                             "intermediate_size": 16, "vocab_size": 32, "sliding_window": 2,
                             "sliding_window_pattern": 2})",
                .parameters = 1496,
                .seq_len = 4,
                .training_flops = 35424}};

}  // namespace flopmeter
