// SPDX-License-Identifier: Apache-2.0
#include "vision_block.h"

#include "decoder.h"

#include <cmath>

namespace flopmeter {

Value vision_linear(LayerBuilder& layer,
                    Value x,
                    std::string_view name,
                    std::int64_t in,
                    std::int64_t out,
                    Rows rows,
                    bool bias) {
  return layer.linear(x,
                      {.name = name,
                       .in = in,
                       .out = out,
                       .bias = bias,
                       .component = Component::vision,
                       .rows = rows});
}

void vision_layer(LayerBuilder& layer, const VisionLayer& spec, AttentionSpec::Over over) {
  const auto project = [&](Value from, std::string_view name, std::int64_t out, bool bias) {
    return vision_linear(layer, from, name, spec.width, out, Rows::tower, bias);
  };
  const auto weighed = [&](Value from, std::string_view name) {
    return name.empty() ? from : layer.parameters(from, name, spec.width);
  };
  Value x = LayerBuilder::input();
  const Value a = norm(layer, x, spec.norm1, spec.width, spec.norm_bias);
  const bool fused = spec.names.k.empty();
  const Value q = project(a, spec.names.q, fused ? 3 * spec.width : spec.width, spec.qkv_bias);
  const Value k = fused ? q : project(a, spec.names.k, spec.width, spec.qkv_bias);
  const Value v = fused ? q : project(a, spec.names.v, spec.width, spec.qkv_bias);
  const std::int64_t d = spec.width / spec.heads;
  const Value core = layer.attention(weighed(q, spec.q_norm),
                                     weighed(k, spec.k_norm),
                                     v,
                                     {.heads = spec.heads,
                                      .kv_heads = spec.heads,
                                      .d_qk = d,
                                      .d_v = d,
                                      .over = over,
                                      .mask = {.shape = MaskPairs::Shape::full},
                                      .component = Component::vision});
  x = layer.sum(x, weighed(project(core, spec.names.o, spec.width, spec.bias), spec.scale1));
  const Value y = norm(layer, x, spec.norm2, spec.width, spec.norm_bias);
  const Value widened = mlp_block(layer,
                                  y,
                                  {.hidden = spec.width,
                                   .ffn = spec.ffn,
                                   .gated = spec.gated,
                                   .bias = spec.bias,
                                   .gate = spec.gate,
                                   .up = spec.up,
                                   .down = spec.down,
                                   .component = Component::vision,
                                   .rows = Rows::tower});
  x = layer.sum(x, weighed(widened, spec.scale2));
  layer.output(x);
}

void add_vision_layers(ModelBuilder& builder,
                       std::string_view prefix,
                       const VisionLayer& spec,
                       AttentionSpec::Over over,
                       TowerLayers layers) {
  const auto add = [&](std::int64_t first, std::int64_t count) {
    builder.layers(
        prefix,
        count,
        [&](LayerBuilder& layer) { vision_layer(layer, spec, over); },
        ModelBuilder::Stream::vision);
    builder.model.runs.back().first = first;
  };
  if (layers.read > 0) add(0, layers.read);
  if (layers.read < layers.all) {
    add(layers.read, layers.all - layers.read);
    builder.model.runs.back().unread = true;
  }
}

std::int64_t read_feature_layer(const Config& config, double otherwise, std::int64_t layers) {
  const double feature =
      config.number_or({"vision_feature_layer", "mm_vision_select_layer"}, otherwise);
  const double read = feature < 0 ? static_cast<double>(layers) + 1 + feature : feature;
  if (read >= 0 && read <= static_cast<double>(layers) && read == std::floor(read))
    return static_cast<std::int64_t>(read);
  config.fail("key 'vision_feature_layer' must name one of the tower's " + std::to_string(layers) +
              " layers");
  return 0;
}

std::int64_t read_tower_layers(const Config& vision, Config::Keys keys, std::int64_t otherwise) {
  const std::int64_t layers = vision.size_or(keys, otherwise);
  if (layers <= most_layers) return layers;
  vision.fail("the vision tower has " + std::to_string(layers) + " layers, expected at most " +
              std::to_string(most_layers));
  return 1;
}

void check_tower(const Config& vision, const VisionLayer& spec) {
  if (spec.width % spec.heads != 0)
    vision.fail("the vision tower's width " + std::to_string(spec.width) +
                " is not a multiple of its " + std::to_string(spec.heads) + " heads");
}

GridTower read_grid_tower(const Config& vision, std::int64_t width, std::int64_t default_patch) {
  GridTower tower;
  tower.patch = vision.size_or({"patch_size"}, default_patch);
  tower.kernel = product(vision,
                         product(vision,
                                 vision.size_or({"in_channels", "in_chans"}, 3),
                                 vision.size_or({"temporal_patch_size"}, 2)),
                         product(vision, tower.patch, tower.patch));
  tower.merge = vision.size_or({"spatial_merge_size"}, 2);
  if (tower.merge > 256) {
    vision.fail("key 'vision_config.spatial_merge_size' is " + std::to_string(tower.merge) +
                ", expected at most 256");
    tower.merge = 1;
  }
  tower.merged = product(vision, width, tower.merge * tower.merge);
  return tower;
}

void open_grid_tower(ModelBuilder& builder, const GridTower& tower, std::int64_t width) {
  builder.model.vision.kind = VisionPlan::Kind::grid;
  builder.model.vision.merge = tower.merge;
  builder.model.facts.multimodal = true;
  builder.once(
      "model.visual.",
      [&](LayerBuilder& layer) {
        Value x = layer.convolution(LayerBuilder::input(),
                                    "patch_embed.proj",
                                    tower.kernel,
                                    width,
                                    tower.bias,
                                    Rows::patches);
        if (tower.positions > 0)
          x = layer.parameters(x, "pos_embed", WideInt{tower.positions} * width);
        layer.output(x);
      },
      ModelBuilder::Stream::vision);
}

void close_grid_tower(ModelBuilder& builder,
                      const GridTower& tower,
                      std::int64_t width,
                      bool norm_bias) {
  const std::int64_t merged = tower.merged;
  builder.once(
      "model.visual.merger.",
      [&](LayerBuilder& layer) {
        Value x = norm(layer, LayerBuilder::input(), "ln_q", width, norm_bias);
        x = vision_linear(layer, x, "mlp.0", merged, merged, Rows::visual);
        layer.output(vision_linear(layer, x, "mlp.2", merged, tower.out, Rows::visual));
      },
      ModelBuilder::Stream::vision);
}

}  // namespace flopmeter
