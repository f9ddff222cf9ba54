// SPDX-License-Identifier: Apache-2.0
#include "qwen3_tower.h"

#include "vision_block.h"

namespace flopmeter {
namespace {

constexpr auto vision_stream = ModelBuilder::Stream::vision;

/// Norm and two linears on merged patches.
void describe_merger(LayerBuilder& layer, const GridTower& tower, std::int64_t norm_width) {
  Value x = norm(layer, LayerBuilder::input(), "norm", norm_width, /*bias=*/true);
  x = vision_linear(layer, x, "linear_fc1", tower.merged, tower.merged, Rows::visual);
  layer.output(vision_linear(layer, x, "linear_fc2", tower.merged, tower.out, Rows::visual));
}

}  // namespace

void add_qwen3_tower(ModelBuilder& builder,
                     const Config& vision,
                     std::int64_t stacked,
                     std::int64_t text_layers) {
  const std::int64_t width = vision.size_or({"hidden_size"}, 1152);
  const VisionLayer tower_layer{.width = width,
                                .heads = vision.size_or({"num_heads", "num_attention_heads"}, 16),
                                .ffn = vision.size_or({"intermediate_size"}, 4304),
                                .up = "mlp.linear_fc1",
                                .down = "mlp.linear_fc2"};
  check_tower(vision, tower_layer);
  GridTower tower = read_grid_tower(vision, width, /*default_patch=*/16);
  tower.out = vision.size_or({"out_hidden_size"}, 3584);
  tower.bias = true;
  tower.positions = vision.size_or({"num_position_embeddings"}, 2304);
  open_grid_tower(builder, tower, width);
  builder.layers(
      "model.visual.blocks.",
      read_tower_layers(vision, {"depth"}, 27),
      [&](LayerBuilder& layer) { vision_layer(layer, tower_layer, AttentionSpec::Over::frames); },
      vision_stream);
  for (std::int64_t i = 0; i < stacked; ++i) {
    LayerRun& run = builder.once(
        "model.visual.deepstack_merger_list." + std::to_string(i) + ".",
        [&](LayerBuilder& layer) { describe_merger(layer, tower, tower.merged); },
        vision_stream);
    run.unread = i >= text_layers;
  }
  builder.once(
      "model.visual.merger.",
      [&](LayerBuilder& layer) { describe_merger(layer, tower, width); },
      vision_stream);
}

}  // namespace flopmeter
