// SPDX-License-Identifier: Apache-2.0
//
// Idefics3 and SmolVLM: a tower like SigLIP's, a merger of neighboring patches, one linear, and
// LLaMA.  An image is cut into tiles, each of which is one for the tower.
#include "../blocks/image_tower.h"
#include "../blocks/text_model.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  ImageTower tower = read_image_tower(
      config,
      "idefics3_vision",
      {.width = 1152, .heads = 16, .ffn = 3072, .layers = 12, .patch = 32, .image = 224});
  tower.prefix = "model.vision_model.";
  tower.final_norm = true;
  const Config text_config = config.child("text_config");
  const bool tied = config.flag_or({"tie_word_embeddings"}, false);
  Decoder text = read_text_model(text_config, text_defaults(text_config), tied);
  text.frame.tied = tied;  // overrides the key of the text
  text.frame.prefix = "model.text_model.";
  text.layer_prefix = "model.text_model.layers.";
  const std::int64_t scale = config.size_or({"scale_factor"}, 2);
  const std::int64_t cell = product(config, scale, scale);
  const std::int64_t merged = product(config, tower.layer.width, cell);
  if (!config.status()) return {};
  ModelBuilder builder;
  builder.model.vision = {.kind = VisionPlan::Kind::fixed,
                          .patches = tower.patches,
                          .visual_tokens = tower.patches / cell};
  add_image_tower(builder, tower);
  builder.once(
      "model.connector.",
      [&](LayerBuilder& layer) {
        layer.output(vision_linear(layer,
                                   LayerBuilder::input(),
                                   "modality_projection.proj",
                                   merged,
                                   text.frame.hidden,
                                   Rows::visual,
                                   /*bias=*/false));
      },
      ModelBuilder::Stream::vision);
  add_text_model(builder, text);
  builder.model.notes.emplace_back(tiles_note);
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_idefics3{
    .name = "idefics3",
    .help = "Idefics3, SmolVLM: tower like SigLIP's, pixel shuffle, one linear, and LLaMA",
    .types = "idefics3 Idefics3ForConditionalGeneration smolvlm SmolVLMForConditionalGeneration",
    .build = build,
    .random_config = {.text_type = "llama"},
    // Tower: D = 4, 1 head, F = 8, 1 layer, 2x2 patches of 3*2*2 = 12 values, merged to one.
    // Text: one layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 6.
    // Parameters: patches 48 + 4, positions 16; layer 172 as in llava, norm 8; projection 128; text
    // 1112: 1488. Forward: patches 2*4*48 = 384; layer 2*4*128 = 1024 and attention 16 pairs x 2*8
    // = 256; projection 2*128 = 256. Training: 2*384 + 3*1536 = 5376. Text: 31968 as in llava.
    .example = {.config = R"({"model_type": "idefics3",
                     "vision_config": {"hidden_size": 4, "num_attention_heads": 1,
                             "intermediate_size": 8, "num_hidden_layers": 1, "image_size": 4,
                             "patch_size": 2},
                     "text_config": {"model_type": "llama", "hidden_size": 8,
                             "num_hidden_layers": 1, "num_attention_heads": 2,
                             "num_key_value_heads": 1, "intermediate_size": 16, "vocab_size": 32}})",
                .parameters = 1488,
                .seq_len = 6,
                .training_flops = 37344}};

}  // namespace flopmeter
