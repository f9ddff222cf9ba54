// SPDX-License-Identifier: Apache-2.0
//
// InternVL 2.5 to 3.5 as in transformers: a tower with layer scales, a merger of neighboring
// patches, two linears, and Qwen2, Qwen3 or LLaMA.
#include "../blocks/text_model.h"
#include "../blocks/vision_block.h"

#include <flopmeter/catalog/model_family.h>

#include <array>

namespace flopmeter {
namespace {

constexpr auto vision_stream = ModelBuilder::Stream::vision;

struct Tower {
  VisionLayer layer;
  std::int64_t layers = 0;
  std::int64_t read = 0;  ///< layers below the output that is read
  std::int64_t patches = 0;
  std::int64_t kernel = 0;  ///< weights of a patch's kernel
  std::int64_t merge = 0;   ///< patches merged along each side
  bool positions = true;
  bool mask_token = false;
  bool final_norm = false;
};

/// Height and width in pixels; one number means both.
std::array<std::int64_t, 2> read_sides(const Config& vision,
                                       std::string_view key,
                                       std::int64_t otherwise) {
  const auto sides = vision.sizes({key});
  if (sides.empty()) return {otherwise, otherwise};
  if (sides.size() > 2) vision.fail("key '" + std::string{key} + "' holds more than two sides");
  return {sides.front(), sides.back()};
}

Tower read_tower(const Config& config) {
  const Config vision = config.child("vision_config");
  const bool qk_norm = vision.flag_or({"use_qk_norm"}, false);
  Tower tower;
  tower.layer = {.width = vision.size_or({"hidden_size"}, 1024),
                 .heads = vision.size_or({"num_attention_heads"}, 16),
                 .ffn = vision.size_or({"intermediate_size"}, 4096),
                 .qkv_bias = vision.flag_or({"attention_bias"}, false),
                 .q_norm = qk_norm ? "attention.q_norm" : "",
                 .k_norm = qk_norm ? "attention.k_norm" : "",
                 .scale1 = "lambda_1",
                 .scale2 = "lambda_2",
                 .norm_bias = vision.text_or({"norm_type"}, "layer_norm") == "layer_norm",
                 .norm1 = "layernorm_before",
                 .norm2 = "layernorm_after",
                 .names = {.q = "attention.q_proj",
                           .k = "attention.k_proj",
                           .v = "attention.v_proj",
                           .o = "attention.projection_layer"},
                 .up = "mlp.fc1",
                 .down = "mlp.fc2"};
  check_tower(vision, tower.layer);
  tower.layers = read_tower_layers(vision, {"num_hidden_layers"}, 24);
  tower.read = read_feature_layer(config, -1, tower.layers);
  tower.positions = vision.flag_or({"use_absolute_position_embeddings"}, true);
  tower.mask_token = vision.flag_or({"use_mask_token"}, false);
  tower.final_norm = !vision.flag_or({"use_mean_pooling"}, true);
  const auto image = read_sides(vision, "image_size", 448);
  const auto patch = read_sides(vision, "patch_size", 14);
  tower.patches = product(vision, image[0] / patch[0], image[1] / patch[1]);
  tower.kernel =
      product(vision, vision.size_or({"num_channels"}, 3), product(vision, patch[0], patch[1]));
  const double ratio = config.number_or({"downsample_ratio"}, 0.5);
  if (ratio > 1.0 / 64 && ratio <= 1) {
    tower.merge = static_cast<std::int64_t>(1 / ratio);
  } else {
    config.fail("key 'downsample_ratio' is not between 1/64 and 1");
  }
  return tower;
}

void add_tower(ModelBuilder& builder, const Tower& tower) {
  const std::int64_t width = tower.layer.width;
  builder.once(
      "model.vision_tower.",
      [&](LayerBuilder& layer) {
        Value x = layer.convolution(LayerBuilder::input(),
                                    "embeddings.patch_embeddings.projection",
                                    tower.kernel,
                                    width,
                                    /*bias=*/true,
                                    Rows::patches);
        x = layer.parameters(x, "embeddings.cls_token", width);
        if (tower.mask_token) x = layer.parameters(x, "embeddings.mask_token", width);
        if (tower.positions) {
          x = layer.parameters(
              x, "embeddings.position_embeddings", (WideInt{tower.patches} + 1) * width);
        }
        layer.output(x);
      },
      vision_stream);
  add_vision_layers(builder,
                    "model.vision_tower.encoder.layer.",
                    tower.layer,
                    AttentionSpec::Over::images,
                    {.read = tower.read, .all = tower.layers});
  if (!tower.final_norm) return;
  builder
      .once(
          "model.vision_tower.",
          [&](LayerBuilder& layer) {
            layer.output(norm(layer, LayerBuilder::input(), "layernorm", width, /*bias=*/true));
          },
          vision_stream)
      .unread = tower.read < tower.layers;
}

Model build(const Config& config) {
  const Tower tower = read_tower(config);
  const Config text_config = config.child("text_config");
  const bool tied = is_tied(config);
  Decoder text = read_text_model(text_config, text_defaults(text_config, "qwen2"), tied);
  text.frame.tied = tied;  // overrides the key of the text
  if (!config.status()) return {};
  const std::int64_t cell = tower.merge * tower.merge;
  const std::int64_t merged = product(config, tower.layer.width, cell);
  if (!config.status()) return {};
  ModelBuilder builder;
  builder.model.vision = {.kind = VisionPlan::Kind::fixed,
                          .patches = tower.patches,
                          .class_tokens = 1,
                          .visual_tokens = tower.patches / cell};
  add_tower(builder, tower);
  builder.once(
      "model.multi_modal_projector.",
      [&](LayerBuilder& layer) {
        const std::int64_t hidden = text.frame.hidden;
        Value x = norm(layer, LayerBuilder::input(), "layer_norm", merged, /*bias=*/true);
        x = vision_linear(layer, x, "linear_1", merged, hidden, Rows::visual);
        layer.output(vision_linear(layer, x, "linear_2", hidden, hidden, Rows::visual));
      },
      vision_stream);
  add_text_model(builder, text);
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_internvl{
    .name = "internvl",
    .help = "InternVL 2.5 to 3.5: tower with layer scales, projector, and Qwen2, Qwen3 or LLaMA",
    .types = "internvl InternVLForConditionalGeneration",
    .build = build,
    .random_config = {.text_type = "llama"},
    // Tower: D = 4, 1 head, F = 8, 1 layer, 2x2 patches of 3*2*2 = 12 values, merged to one.
    // Text: one layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 6; 5 rows in the tower.
    // Parameters: patches 48 + 4, class 4, positions 20; layer 3*16 + 20 + 40 + 36, scales 8, norms
    // 16; projector 32 + 136 + 72; text 1112 as in llama and biases 16: 1612. Forward: patches
    // 2*4*48 = 384; layer 2*5*(4*16 + 2*32) = 1280 and attention 25 pairs x 2*8 = 400; projector
    // 2*(128 + 64) = 384. Training: 2*384 + 3*1680 + 3*384 = 6960. Text: 31968 as in llava.
    .example = {.config = R"({"model_type": "internvl", "tie_word_embeddings": false,
                     "vision_config": {"hidden_size": 4, "num_attention_heads": 1,
                             "intermediate_size": 8, "num_hidden_layers": 1,
                             "image_size": [4, 4], "patch_size": 2},
                     "text_config": {"model_type": "qwen2", "hidden_size": 8,
                             "num_hidden_layers": 1, "num_attention_heads": 2,
                             "num_key_value_heads": 1, "intermediate_size": 16, "vocab_size": 32}})",
                .parameters = 1612,
                .seq_len = 6,
                .training_flops = 38928}};

}  // namespace flopmeter
