// SPDX-License-Identifier: Apache-2.0
//
// Mistral Small 3.1 and later: Pixtral's tower, which takes images of any size, a merger of
// neighboring patches, two linears, and Mistral.
#include "../blocks/text_model.h"
#include "../blocks/vision_block.h"

#include <flopmeter/catalog/model_family.h>
#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

constexpr auto vision_stream = ModelBuilder::Stream::vision;

struct Pixtral {
  VisionLayer layer;
  std::int64_t layers = 0;
  std::int64_t read = 0;    ///< layers below the output that is read
  std::int64_t kernel = 0;  ///< weights of a patch's kernel
  std::int64_t merge = 0;   ///< patches merged along each side
  std::int64_t merged = 0;  ///< width of a merged patch
};

Pixtral read_pixtral(const Config& config) {
  const Config vision = config.child("vision_config");
  const std::string type = vision.text_or({"model_type"}, "pixtral");
  if (type != "pixtral")
    config.fail("vision tower '" + printable(type) + "' is not supported; supported: pixtral");
  Pixtral tower;
  tower.layer = {.width = vision.size_or({"hidden_size"}, 1024),
                 .heads = vision.size_or({"num_attention_heads"}, 16),
                 .ffn = vision.size_or({"intermediate_size"}, 4096),
                 .gated = true,
                 .qkv_bias = false,
                 .bias = false,
                 .norm_bias = false,
                 .norm1 = "attention_norm",
                 .norm2 = "ffn_norm",
                 .names = {.q = "attention.q_proj",
                           .k = "attention.k_proj",
                           .v = "attention.v_proj",
                           .o = "attention.o_proj"},
                 .gate = "feed_forward.gate_proj",
                 .up = "feed_forward.up_proj",
                 .down = "feed_forward.down_proj"};
  check_tower(vision, tower.layer);
  tower.layers = read_tower_layers(vision, {"num_hidden_layers"}, 24);
  tower.read = read_feature_layer(config, -1, tower.layers);
  const std::int64_t patch = vision.size_or({"patch_size"}, config.has("vision_config") ? 16 : 14);
  tower.kernel =
      product(vision, vision.size_or({"num_channels"}, 3), product(vision, patch, patch));
  tower.merge = config.size_or({"spatial_merge_size"}, 2);
  if (tower.merge > 256) {
    config.fail("key 'spatial_merge_size' is " + std::to_string(tower.merge) +
                ", expected at most 256");
    tower.merge = 1;
  }
  tower.merged = product(config, tower.layer.width, product(config, tower.merge, tower.merge));
  return tower;
}

void add_tower(ModelBuilder& builder, const Pixtral& tower) {
  const std::int64_t width = tower.layer.width;
  builder.once(
      "model.vision_tower.",
      [&](LayerBuilder& layer) {
        const Value x = layer.convolution(LayerBuilder::input(),
                                          "patch_conv",
                                          tower.kernel,
                                          width,
                                          /*bias=*/false,
                                          Rows::patches);
        layer.output(norm(layer, x, "ln_pre", width));
      },
      vision_stream);
  add_vision_layers(builder,
                    "model.vision_tower.transformer.layers.",
                    tower.layer,
                    AttentionSpec::Over::packed,
                    {.read = tower.read, .all = tower.layers});
}

Decoder read_text(const Config& config) {
  const Config text = config.child("text_config");
  const bool tied = is_tied(config);
  const TextDefaults small{.vocab = 131072,
                           .hidden = 5120,
                           .ffn = 32768,
                           .layers = 40,
                           .heads = 32,
                           .kv_heads = 8,
                           .head_dim = 128};
  Decoder decoder = read_text_model(
      text, config.has("text_config") ? text_defaults(text, "mistral") : small, tied);
  decoder.frame.tied = tied;  // overrides the key of the text
  return decoder;
}

Model build(const Config& config) {
  const Pixtral tower = read_pixtral(config);
  const Decoder text = read_text(config);
  if (!config.status()) return {};
  ModelBuilder builder;
  builder.model.vision = {.kind = VisionPlan::Kind::grid, .merge = tower.merge};
  add_tower(builder, tower);
  const bool bias = config.flag_or({"multimodal_projector_bias"}, false);
  builder.once(
      "model.multi_modal_projector.",
      [&](LayerBuilder& layer) {
        const std::int64_t width = tower.layer.width;
        const std::int64_t hidden = text.frame.hidden;
        Value x = norm(layer, LayerBuilder::input(), "norm", width);
        x = vision_linear(layer,
                          x,
                          "patch_merger.merging_layer",
                          tower.merged,
                          width,
                          Rows::visual,
                          /*bias=*/false);
        x = vision_linear(layer, x, "linear_1", width, hidden, Rows::visual, bias);
        layer.output(vision_linear(layer, x, "linear_2", hidden, hidden, Rows::visual, bias));
      },
      vision_stream);
  add_text_model(builder, text);
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_mistral3{
    .name = "mistral3",
    .help = "Mistral Small 3.1 and later: Pixtral tower, merger of patches, projector, and Mistral",
    .types = "mistral3 Mistral3ForConditionalGeneration",
    .build = build,
    .random_config = {.text_type = "llama"},
    // Tower: D = 4, 1 head, F = 8, 1 layer, patches of 3*2*2 = 12 values; the image that is assumed
    // has 48x48 = 2304, four of which become one visual token. Text: as in llama, s = 6.
    // Parameters: patches 48, norm 4; layer 4*16 + 3*32 and norms 8; projector norm 4, 64, 32, 64;
    // text 1112: 1496. Forward: patches 2*2304*48 = 221184; layer 2*2304*160 = 737280 and attention
    // 2304^2 pairs x 2*8 = 84934656; projector 2*576*160 = 184320. Training: 2*221184 + 3*85856256
    // = 258011136. Text: 31968 as in llava.
    .example = {.config = R"({"model_type": "mistral3", "tie_word_embeddings": false,
                     "vision_config": {"model_type": "pixtral", "hidden_size": 4,
                             "num_attention_heads": 1, "intermediate_size": 8,
                             "num_hidden_layers": 1, "patch_size": 2},
                     "text_config": {"model_type": "mistral", "hidden_size": 8,
                             "num_hidden_layers": 1, "num_attention_heads": 2,
                             "num_key_value_heads": 1, "intermediate_size": 16, "vocab_size": 32}})",
                .parameters = 1496,
                .seq_len = 6,
                .training_flops = 258043104}};

}  // namespace flopmeter
