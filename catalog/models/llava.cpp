// SPDX-License-Identifier: Apache-2.0
//
// LLaVA: a CLIP tower, two linears, and LLaMA, Vicuna, Mistral, Qwen2 or Qwen3.  The tower's layers
// above the one that is read run all the same, but no gradient reaches them.
#include "../src/text_model.h"
#include "../src/vision_block.h"

#include <flopmeter/catalog/model_family.h>
#include <flopmeter/core/text.h>

#include <array>

namespace flopmeter {
namespace {

constexpr auto vision_stream = ModelBuilder::Stream::vision;

struct Clip {
  VisionLayer layer;
  std::int64_t layers = 0;
  std::int64_t read = 0;  ///< layers below the output that is read
  std::int64_t patches = 0;
  std::int64_t kernel = 0;  ///< weights of a patch's kernel
};

/// Without any vision_config it is CLIP-L/14 at 336 pixels; keys missing inside one are CLIP's own.
Clip read_clip(const Config& config) {
  const Config vision = config.child("vision_config");
  const bool given = config.has("vision_config");
  const auto size = [&](std::string_view key, std::int64_t large, std::int64_t base) {
    return vision.size_or({key}, given ? base : large);
  };
  const std::string type = vision.text_or({"model_type"}, "clip_vision_model");
  if (type != "clip_vision_model") {
    config.fail("vision tower '" + printable(type) +
                "' is not known in LLaVA; known is clip_vision_model");
  }
  Clip clip;
  clip.layer = {.width = size("hidden_size", 1024, 768),
                .heads = size("num_attention_heads", 16, 12),
                .ffn = size("intermediate_size", 4096, 3072),
                .norm1 = "layer_norm1",
                .norm2 = "layer_norm2",
                .names = {.q = "self_attn.q_proj",
                          .k = "self_attn.k_proj",
                          .v = "self_attn.v_proj",
                          .o = "self_attn.out_proj"},
                .up = "mlp.fc1",
                .down = "mlp.fc2"};
  clip.layers = read_tower_layers(vision, {"num_hidden_layers"}, given ? 12 : 24);
  const std::int64_t patch = size("patch_size", 14, 32);
  const std::int64_t side = size("image_size", 336, 224) / patch;
  check_tower(vision, clip.layer);
  clip.patches = product(vision, side, side);
  clip.kernel = product(vision, size("num_channels", 3, 3), product(vision, patch, patch));
  clip.read = read_feature_layer(config, -2, clip.layers);
  return clip;
}

void add_clip(ModelBuilder& builder, const Clip& clip) {
  const std::int64_t width = clip.layer.width;
  builder.once(
      "model.vision_tower.",
      [&](LayerBuilder& layer) {
        Value x = layer.convolution(LayerBuilder::input(),
                                    "embeddings.patch_embedding",
                                    clip.kernel,
                                    width,
                                    false,
                                    Rows::patches);
        x = layer.parameters(x, "embeddings.class_embedding", width);
        x = layer.parameters(
            x, "embeddings.position_embedding", (WideInt{clip.patches} + 1) * width);
        layer.output(norm(layer, x, "pre_layrnorm", width, true));
      },
      vision_stream);
  const auto add_layers = [&](std::int64_t first, std::int64_t count) {
    builder.layers(
        "model.vision_tower.encoder.layers.",
        count,
        [&](LayerBuilder& layer) { vision_layer(layer, clip.layer, AttentionSpec::Over::images); },
        vision_stream);
    builder.model.runs.back().first = first;
  };
  if (clip.read > 0) add_layers(0, clip.read);
  if (clip.read < clip.layers) {
    add_layers(clip.read, clip.layers - clip.read);
    builder.model.runs.back().unread = true;
  }
  builder
      .once(
          "model.vision_tower.",
          [&](LayerBuilder& layer) {
            layer.output(norm(layer, LayerBuilder::input(), "post_layernorm", width, true));
          },
          vision_stream)
      .unread = true;
}

Model build_llava(const Config& config) {
  const Clip clip = read_clip(config);
  const std::string strategy = config.text_or({"vision_feature_select_strategy"}, "default");
  const bool flat = !config.has("text_config") && config.has("hidden_size");
  const Config text_config = flat ? config : config.child("text_config");
  const Decoder text = read_text_model(
      text_config, text_defaults(text_config), config.flag_or({"tie_word_embeddings"}, false));
  if (!config.status()) return {};
  ModelBuilder builder;
  builder.model.vision = {.kind = VisionPlan::Kind::fixed,
                          .patches = clip.patches,
                          .class_tokens = 1,
                          .visual_tokens = clip.patches + (strategy == "full" ? 1 : 0)};
  add_clip(builder, clip);
  const bool bias = config.flag_or({"multimodal_projector_bias"}, true);
  builder.once(
      "model.multi_modal_projector.",
      [&](LayerBuilder& layer) {
        const std::int64_t hidden = text.frame.hidden;
        const Value x = vision_linear(
            layer, LayerBuilder::input(), "linear_1", clip.layer.width, hidden, Rows::visual, bias);
        layer.output(vision_linear(layer, x, "linear_2", hidden, hidden, Rows::visual, bias));
      },
      vision_stream);
  add_text_model(builder, text);
  return std::move(builder.model);
}

constexpr std::array<std::string_view, 3> types = {
    "llava", "LlavaForConditionalGeneration", "LlavaLlamaForCausalLM"};

}  // namespace

extern const ModelFamily llava_plugin;
constinit const ModelFamily llava_plugin{
    .name = "llava",
    .help = "LLaVA: CLIP tower, projector, and LLaMA, Vicuna, Mistral or Qwen",
    .types = types,
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
