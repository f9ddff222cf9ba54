// SPDX-License-Identifier: Apache-2.0
//
// PaliGemma 1 and 2: SigLIP's tower, one linear, and Gemma or Gemma 2.
#include "../blocks/image_tower.h"
#include "../blocks/text_model.h"

#include <flopmeter/catalog/model_family.h>
#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

bool is_even(std::int64_t layer, std::int64_t /*argument*/) {
  return layer % 2 == 0;
}

/// Defaults of the classes of Gemma and Gemma 2; without `text_config`
/// it is PaliGemma 3B's.
TextDefaults defaults_for(const Config& config, bool second) {
  TextDefaults defaults{.vocab = 257152,
                        .hidden = 2048,
                        .ffn = 16384,
                        .layers = 18,
                        .heads = 8,
                        .kv_heads = 1,
                        .head_dim = 256};
  if (!config.has("text_config")) return defaults;
  defaults = {.vocab = 256000,
              .hidden = 3072,
              .ffn = 24576,
              .layers = 28,
              .heads = 16,
              .kv_heads = 16,
              .head_dim = 256};
  if (second) {
    defaults.hidden = 2304;
    defaults.ffn = 9216;
    defaults.layers = 26;
    defaults.heads = 8;
    defaults.kv_heads = 4;
  }
  return defaults;
}

Decoder read_text(const Config& config) {
  const Config text = config.child("text_config");
  const std::string type = text.text_or({"model_type"}, "gemma");
  const bool second = type == "gemma2";
  if (!second && type != "gemma") {
    config.fail("text model '" + printable(type) +
                "' is not supported in PaliGemma; supported: gemma, gemma2");
  }
  const bool tied = config.flag_or({"tie_word_embeddings"}, true);
  Decoder decoder = read_text_model(text, defaults_for(config, second), tied);
  decoder.frame.tied = tied;  // overrides the key of the text
  decoder.attention.mask_tensor = true;
  if (!second || !config.status()) return decoder;
  decoder.norms = {.before_attention = "input_layernorm",
                   .after_attention = "post_attention_layernorm",
                   .before_mlp = "pre_feedforward_layernorm",
                   .after_mlp = "post_feedforward_layernorm"};
  if (!text.is_null("sliding_window")) decoder.window = text.size_or({"sliding_window"}, 4096);
  decoder.windowed = read_windowed(text, decoder.layers, is_even, 0);
  return decoder;
}

Model build(const Config& config) {
  ImageTower tower = read_image_tower(
      config,
      "siglip_vision_model",
      {.width = 1152, .heads = 16, .ffn = 4096, .layers = 27, .patch = 14, .image = 224});
  tower.final_norm = true;
  const Decoder text = read_text(config);
  if (!config.status()) return {};
  ModelBuilder builder;
  builder.model.vision = {.kind = VisionPlan::Kind::fixed,
                          .patches = tower.patches,
                          .class_tokens = tower.clip ? 1 : 0,
                          .visual_tokens = tower.patches};
  add_image_tower(builder, tower);
  builder.once(
      "model.multi_modal_projector.",
      [&](LayerBuilder& layer) {
        layer.output(vision_linear(layer,
                                   LayerBuilder::input(),
                                   "linear",
                                   tower.layer.width,
                                   config.size_or({"projection_dim"}, 2048),
                                   Rows::visual));
      },
      ModelBuilder::Stream::vision);
  add_text_model(builder, text);
  builder.model.notes.emplace_back(
      "image and prompt attend to each other in both directions; counted as causal");
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_paligemma{
    .name = "paligemma",
    .help = "PaliGemma 1 and 2: SigLIP tower, projector, and Gemma or Gemma 2",
    .types = "paligemma PaliGemmaForConditionalGeneration",
    .build = build,
    .random_config = {.text_type = "gemma"},
    // Tower: D = 4, 1 head, F = 8, 1 layer, 2x2 patches of 3*2*2 = 12 values. Text: one layer, h =
    // 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 6; 4 visual tokens.
    // Parameters: patches 48 + 4, positions 16; layer 172 as in llava, norm 8; projector 32 + 8;
    // text, tied, 1112 - 256: 1144. Forward: patches 2*4*48 = 384; layer 2*4*128 = 1024 and
    // attention 16 pairs x 2*8 = 256; projector 2*4*32 = 256. Training: 2*384 + 3*1536 = 5376.
    // Text: 31968 as in llava.
    .example = {.config = R"({"model_type": "paligemma", "projection_dim": 8,
                     "vision_config": {"hidden_size": 4, "num_attention_heads": 1,
                             "intermediate_size": 8, "num_hidden_layers": 1, "image_size": 4,
                             "patch_size": 2, "vision_use_head": false},
                     "text_config": {"model_type": "gemma", "hidden_size": 8, "head_dim": 4,
                             "num_hidden_layers": 1, "num_attention_heads": 2,
                             "num_key_value_heads": 1, "intermediate_size": 16, "vocab_size": 32}})",
                .parameters = 1144,
                .seq_len = 6,
                .training_flops = 37344}};

}  // namespace flopmeter
