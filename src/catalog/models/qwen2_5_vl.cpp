// SPDX-License-Identifier: Apache-2.0
//
// Qwen2.5-VL: a tower with ragged windows in most blocks and attention within each frame in the
// others, a merger of 2x2 patches, and Qwen2.
#include "../blocks/text_model.h"
#include "../blocks/vision_block.h"

#include <flopmeter/catalog/model_family.h>

#include <algorithm>

namespace flopmeter {
namespace {

using Over = AttentionSpec::Over;

/// Which blocks look at whole frames; the others look at windows.
std::vector<int> block_kinds(const Config& vision) {
  const std::int64_t depth = read_tower_layers(vision, {"depth"}, 32);
  std::vector<std::int64_t> whole = vision.counts({"fullatt_block_indexes"});
  if (!vision.has("fullatt_block_indexes")) whole = {7, 15, 23, 31};
  std::vector<int> kinds(static_cast<std::size_t>(depth), static_cast<int>(Over::windows));
  for (const std::int64_t block : whole) {
    if (block < depth) kinds[static_cast<std::size_t>(block)] = static_cast<int>(Over::frames);
  }
  return kinds;
}

Model build_qwen2_5_vl(const Config& config) {
  const Config vision = config.child("vision_config");
  const std::int64_t width = vision.size_or({"hidden_size"}, 3584);
  const VisionLayer tower_layer{.width = width,
                                .heads = vision.size_or({"num_heads", "num_attention_heads"}, 16),
                                .ffn = vision.size_or({"intermediate_size"}, 3420),
                                .gated = true,
                                .norm_bias = false};
  check_tower(vision, tower_layer);
  GridTower tower = read_grid_tower(vision, width);
  tower.out = vision.size_or({"out_hidden_size"}, 3584);
  const Decoder text = read_qwen_text(config);
  if (!config.status()) return {};
  ModelBuilder builder;
  open_grid_tower(builder, tower, width);
  builder.model.vision.window =
      std::max<std::int64_t>(vision.size_or({"window_size"}, 112) / tower.patch, 1);
  builder.layers(
      "model.visual.blocks.",
      block_kinds(vision),
      [&](LayerBuilder& layer, int kind) {
        vision_layer(layer, tower_layer, static_cast<Over>(kind));
      },
      ModelBuilder::Stream::vision);
  close_grid_tower(builder, tower, width, /*norm_bias=*/false);
  add_text_model(builder, text);
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_qwen2_5_vl{
    .name = "qwen2_5_vl",
    .help = "Qwen2.5-VL: tower with ragged windows, merger, Qwen2",
    .types = "qwen2_5_vl Qwen2_5_VLForConditionalGeneration",
    .build = build_qwen2_5_vl,
    // Tower: D = 4, 1 head, F = 8, 2 blocks of which the second sees whole frames, patches of 12
    // values, windows of 20 pixels = 10x10 patches = 5x5 merged ones. Text as in qwen2_vl, s = 580
    // and the default image of 48x48 = 2304 patches, 24x24 merged: 4 windows of 5 and one of 4 a
    // side. Parameters: patches 48; a block 4*16 + 3*32 + biases 12+4+8+8+4 + norms 8 = 204, twice;
    // merger 4 + 272 + 136 = 412; text 1128: 1996. Window pairs: (16 * (4*25 + 16)^2) = 16*116^2 =
    // 215296; whole 2304^2 = 5308416. Forward: patches 221184; blocks 2*(2*2304*160) = 1474560;
    // attention (215296 + 5308416) x 16 = 88379392; merger 442368. Training: 2*221184 + 3*(1474560
    // + 88379392 + 442368) = 271331328. Text 19070400 as in qwen2_vl.
    .example = {.config = R"({"model_type": "qwen2_5_vl", "vision_config": {"hidden_size": 4,
                             "depth": 2, "num_heads": 1, "intermediate_size": 8, "patch_size": 2,
                             "temporal_patch_size": 1, "window_size": 20, "fullatt_block_indexes": [1],
                             "out_hidden_size": 8}, "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "vocab_size": 32})",
                .parameters = 1996,
                .seq_len = 580,
                .training_flops = 290401728}};

}  // namespace flopmeter
