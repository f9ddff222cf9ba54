// SPDX-License-Identifier: Apache-2.0
//
// Qwen2-VL: a tower that attends within each frame, a merger of 2x2 patches, and Qwen2.
#include "../blocks/text_model.h"
#include "../blocks/vision_block.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build_qwen2_vl(const Config& config) {
  const Config vision = config.child("vision_config");
  const std::int64_t width = vision.size_or({"embed_dim"}, 1280);
  const VisionLayer tower_layer{.width = width,
                                .heads = vision.size_or({"num_heads", "num_attention_heads"}, 16),
                                .ffn = product(vision, width, vision.size_or({"mlp_ratio"}, 4)),
                                .up = "mlp.fc1",
                                .down = "mlp.fc2"};
  check_tower(vision, tower_layer);
  GridTower tower = read_grid_tower(vision, width);
  tower.out = vision.size_or({"hidden_size"}, 3584);
  const Decoder text = read_qwen_text(config);
  if (!config.status()) return {};
  ModelBuilder builder;
  open_grid_tower(builder, tower, width);
  builder.layers(
      "model.visual.blocks.",
      read_tower_layers(vision, {"depth"}, 32),
      [&](LayerBuilder& layer) { vision_layer(layer, tower_layer, AttentionSpec::Over::frames); },
      ModelBuilder::Stream::vision);
  close_grid_tower(builder, tower, width, /*norm_bias=*/true);
  add_text_model(builder, text);
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_qwen2_vl{
    .name = "qwen2_vl",
    .help = "Qwen2-VL: tower with attention within each frame, merger, Qwen2",
    .types = "qwen2_vl Qwen2VLForConditionalGeneration",
    .build = build_qwen2_vl,
    // Tower: D = 4, 1 head, F = 8, 1 block, patches of 3*1*2*2 = 12 values, merged 2x2. Text: one
    // layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32; s = 576 + 4 = 580 with the default image
    // of 48x48 = 2304 patches. Parameters: patches 48; block 4*16 + 2*32 + biases 12+4+8+4 + norms
    // 16 = 172; merger 8 + (256 + 16) + (128 + 8) = 416; text 1112 and 16 of bias on q, k, v: 1764.
    // Forward: patches 2*2304*48 = 221184; block 2*2304*128 = 589824 and attention 2304^2 x 2*8 =
    // 84934656; merger 2*576*384 = 442368. Training: 2*221184 + 3*(589824 + 84934656 + 442368) =
    // 258342912. Text: 580*1664 = 965120; attention 580*581/2 = 168490 pairs x 32 = 5391680;
    // 3*6356800 = 19070400.
    .example = {
        .config = R"({"model_type": "qwen2_vl", "vision_config": {"embed_dim": 4, "depth": 1,
                             "num_heads": 1, "mlp_ratio": 2, "patch_size": 2, "temporal_patch_size": 1,
                             "hidden_size": 8}, "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "vocab_size": 32})",
        .parameters = 1764,
        .seq_len = 580,
        .training_flops = 277413312}};

}  // namespace flopmeter
