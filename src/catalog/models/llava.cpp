// SPDX-License-Identifier: Apache-2.0
//
// LLaVA, LLaVA-NeXT and LLaVA-OneVision: a CLIP or SigLIP tower, two linears, and LLaMA, Vicuna,
// Mistral, Qwen2 or Qwen3.  The tower's layers above the one that is read run all the same, but no
// gradient reaches them.  The later two cut an image into tiles.
#include "../blocks/image_tower.h"
#include "../blocks/text_model.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

constexpr auto vision_stream = ModelBuilder::Stream::vision;

/// Defaults of a configuration class.
struct Defaults {
  std::string_view tower = "clip_vision_model";
  TowerSizes sizes;
  double layer = -2;                      ///< whose output is read
  std::string_view strategy = "default";  ///< excludes the tower's first row; or "full"
  std::string_view text = "llama";
  bool tiles = false;  ///< an image is cut into several for the tower
};

Defaults defaults_for(const Config& config) {
  const TowerSizes clip{
      .width = 1024, .heads = 16, .ffn = 4096, .layers = 24, .patch = 14, .image = 336};
  const TowerSizes siglip{
      .width = 1152, .heads = 16, .ffn = 4304, .layers = 26, .patch = 14, .image = 384};
  if (is_type(config, "llava_onevision", "LlavaOnevisionForConditionalGeneration")) {
    return {.tower = "siglip_vision_model",
            .sizes = siglip,
            .layer = -1,
            .strategy = "full",
            .text = "qwen2",
            .tiles = true};
  }
  return {.sizes = clip,
          .tiles = is_type(config, "llava_next", "LlavaNextForConditionalGeneration")};
}

/// `hidden` is the text's width.
void add_projector(ModelBuilder& builder,
                   const Config& config,
                   const Defaults& defaults,
                   std::int64_t width,
                   std::int64_t hidden) {
  const bool bias = config.flag_or({"multimodal_projector_bias"}, true);
  builder.once(
      "model.",
      [&](LayerBuilder& layer) {
        const auto project = [&](Value x, std::string_view name, std::int64_t in) {
          return vision_linear(layer, x, name, in, hidden, Rows::visual, bias);
        };
        Value x = project(LayerBuilder::input(), "multi_modal_projector.linear_1", width);
        x = project(x, "multi_modal_projector.linear_2", hidden);
        layer.output(defaults.tiles ? layer.parameters(x, "image_newline", hidden) : x);
      },
      vision_stream);
}

Model build_llava(const Config& config) {
  const Defaults defaults = defaults_for(config);
  ImageTower tower = read_image_tower(config, defaults.tower, defaults.sizes);
  tower.read = read_feature_layer(config, defaults.layer, tower.layers);
  const bool full = config.text_or({"vision_feature_select_strategy"}, defaults.strategy) == "full";
  const bool flat = !config.has("text_config") && config.has("hidden_size");
  const Config text_config = flat ? config : config.child("text_config");
  const Decoder text = read_text_model(text_config,
                                       text_defaults(text_config, defaults.text),
                                       config.flag_or({"tie_word_embeddings"}, false));
  if (!config.status()) return {};
  ModelBuilder builder;
  const std::int64_t class_tokens = tower.clip ? 1 : 0;
  builder.model.vision = {.kind = VisionPlan::Kind::fixed,
                          .patches = tower.patches,
                          .class_tokens = class_tokens,
                          .visual_tokens = tower.patches + class_tokens - (full ? 0 : 1),
                          .cropped = defaults.tiles};
  add_image_tower(builder, tower);
  add_projector(builder, config, defaults, tower.layer.width, text.frame.hidden);
  add_text_model(builder, text);
  if (defaults.tiles) builder.model.notes.emplace_back(tiles_note);
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_llava{
    .name = "llava",
    .help = "LLaVA, NeXT, OneVision: CLIP or SigLIP tower, projector, and LLaMA, Mistral or Qwen",
    .types =
        "llava LlavaForConditionalGeneration LlavaLlamaForCausalLM llava_next "
        "LlavaNextForConditionalGeneration llava_onevision LlavaOnevisionForConditionalGeneration",
    .build = build_llava,
    // Tower: D = 4, 1 head, F = 8, 2 layers of which the first is read, 2x2 patches of 3*2*2 = 12
    // values. Text: one layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 6; one image of 4
    // visual tokens, 5 in the tower.
    // Parameters: patches 48, class 4, positions 20, norms 8 + 8; a layer 4*20 + 40 + 36 + 16 =
    // 172, twice; projector 40 + 72; text 1112 as in llama: 1656. Forward: patches 2*4*48 = 384; a
    // layer 2*5*(4*16 + 2*32) = 1280 and attention 25 pairs x 2*8 = 400; projector 2*4*(32 + 64) =
    // 768. Training: 2*384 + 3*1680 + 1680 (no gradient) + 3*768 = 9792. Text: 3*(6*1664 + 21 pairs
    // x 2 heads x 16) = 31968.
    .example = {
        .config = R"({"model_type": "llava", "vision_config": {"model_type": "clip_vision_model",
                             "hidden_size": 4, "num_attention_heads": 1, "intermediate_size": 8,
                             "num_hidden_layers": 2, "image_size": 4, "patch_size": 2},
                             "text_config": {"model_type": "llama", "hidden_size": 8,
                             "num_hidden_layers": 1, "num_attention_heads": 2,
                             "num_key_value_heads": 1, "intermediate_size": 16, "vocab_size": 32}})",
        .parameters = 1656,
        .seq_len = 6,
        .training_flops = 41760}};

}  // namespace flopmeter
