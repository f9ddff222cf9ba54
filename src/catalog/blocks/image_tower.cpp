// SPDX-License-Identifier: Apache-2.0
#include "image_tower.h"

#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

constexpr auto vision_stream = ModelBuilder::Stream::vision;

/// A learned query attends to all patches.  Its result is not read: its few FLOPs are excluded.
void add_pooling(LayerBuilder& layer, Value x, const VisionLayer& spec) {
  const WideInt width = spec.width;
  x = layer.parameters(x, "head.probe", width);
  x = layer.parameters(x, "head.attention", 4 * width * width + 4 * width);
  x = layer.parameters(x, "head.layernorm", 2 * width);
  x = layer.parameters(x, "head.mlp", 2 * width * spec.ffn + spec.ffn + width);
  layer.output(x);
}

}  // namespace

ImageTower read_image_tower(const Config& config, std::string_view type, const TowerSizes& whole) {
  const Config vision = config.child("vision_config");
  const bool given = config.has("vision_config");
  const std::string found = vision.text_or({"model_type"}, type);
  ImageTower tower;
  tower.clip = found == "clip_vision_model";
  const bool siglip = found == "siglip_vision_model";
  const bool idefics = found == "idefics3_vision" || found == "smolvlm_vision" ||
                       found == "idefics3";  // the name in the first files
  if (!tower.clip && !siglip && !idefics) {
    config.fail("vision tower '" + printable(found) +
                "' is not supported; supported: clip_vision_model, siglip_vision_model");
  }
  const TowerSizes own{.width = idefics ? 1152 : 768,
                       .heads = idefics ? 16 : 12,
                       .ffn = 3072,
                       .layers = 12,
                       .patch = siglip ? 16 : 32,
                       .image = 224};
  const TowerSizes& otherwise = given ? own : whole;
  tower.layer = {.width = vision.size_or({"hidden_size"}, otherwise.width),
                 .heads = vision.size_or({"num_attention_heads"}, otherwise.heads),
                 .ffn = vision.size_or({"intermediate_size"}, otherwise.ffn),
                 .norm1 = "layer_norm1",
                 .norm2 = "layer_norm2",
                 .names = {.q = "self_attn.q_proj",
                           .k = "self_attn.k_proj",
                           .v = "self_attn.v_proj",
                           .o = "self_attn.out_proj"},
                 .up = "mlp.fc1",
                 .down = "mlp.fc2"};
  tower.layers = read_tower_layers(vision, {"num_hidden_layers"}, otherwise.layers);
  tower.read = tower.layers;
  const std::int64_t patch = vision.size_or({"patch_size"}, otherwise.patch);
  const std::int64_t side = vision.size_or({"image_size"}, otherwise.image) / patch;
  check_tower(vision, tower.layer);
  tower.patches = product(vision, side, side);
  tower.kernel =
      product(vision, vision.size_or({"num_channels"}, 3), product(vision, patch, patch));
  tower.pooled = siglip && vision.flag_or({"vision_use_head"}, given);
  return tower;
}

void add_image_tower(ModelBuilder& builder, const ImageTower& tower) {
  const std::int64_t width = tower.layer.width;
  builder.once(
      tower.prefix,
      [&](LayerBuilder& layer) {
        Value x = layer.convolution(LayerBuilder::input(),
                                    "embeddings.patch_embedding",
                                    tower.kernel,
                                    width,
                                    /*bias=*/!tower.clip,
                                    Rows::patches);
        if (tower.clip) x = layer.parameters(x, "embeddings.class_embedding", width);
        x = layer.parameters(x,
                             "embeddings.position_embedding",
                             (WideInt{tower.patches} + (tower.clip ? 1 : 0)) * width);
        layer.output(tower.clip ? norm(layer, x, "pre_layrnorm", width, /*bias=*/true) : x);
      },
      vision_stream);
  add_vision_layers(builder,
                    tower.prefix + "encoder.layers.",
                    tower.layer,
                    AttentionSpec::Over::images,
                    {.read = tower.read, .all = tower.layers});
  builder
      .once(
          tower.prefix,
          [&](LayerBuilder& layer) {
            layer.output(norm(layer, LayerBuilder::input(), "post_layernorm", width, true));
          },
          vision_stream)
      .unread = !tower.final_norm;
  if (!tower.pooled) return;
  builder
      .once(
          tower.prefix,
          [&](LayerBuilder& layer) { add_pooling(layer, LayerBuilder::input(), tower.layer); },
          vision_stream)
      .unread = true;
  builder.model.notes.emplace_back(
      "key 'vision_config.vision_use_head' is not false: the pooling head, which nothing reads, "
      "counts as parameters alone");
}

}  // namespace flopmeter
