// SPDX-License-Identifier: Apache-2.0
//
// Qwen3-VL: a tower that attends within each frame, with learned positions; a merger after it and
// further ones after some of its blocks, whose results join the first layers of the text (deep
// stack); Qwen3, with experts or without.
#include "../blocks/moe_block.h"
#include "../blocks/qwen3_tower.h"
#include "../blocks/text_model.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

SparseDecoder read_text(const Config& config, bool experts) {
  const Config text = config.has("text_config") ? config.child("text_config") : config;
  const TextDefaults dense{.vocab = 151936,
                           .hidden = 4096,
                           .ffn = 22016,
                           .layers = 32,
                           .heads = 32,
                           .head_dim = 128,
                           .qk_norm = true};
  const TextDefaults sparse{
      .vocab = 151936, .hidden = 2048, .ffn = 5632, .layers = 24, .heads = 16, .qk_norm = true};
  const bool tied = config.flag_or({"tie_word_embeddings"}, false);
  SparseDecoder spec;
  spec.base = read_text_model(text, experts ? sparse : dense, tied);
  spec.base.frame.tied = tied;  // overrides the key of the text
  if (!experts || !check_sizes(config, spec.base)) return spec;
  spec.sparse.assign(static_cast<std::size_t>(spec.base.layers), true);
  spec.moe.hidden = spec.base.frame.hidden;
  spec.moe.ffn = text.size_or({"moe_intermediate_size"}, 1408);
  read_experts(text, spec.moe, {"num_experts", "num_local_experts"}, 60, 4);
  read_sparse_layers(text, spec);
  return spec;
}

Model build(const Config& config) {
  const bool experts = is_type(config, "qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration");
  const SparseDecoder text = read_text(config, experts);
  if (!check_sizes(config, text.base)) return {};
  ModelBuilder builder;
  const Config vision = config.child("vision_config");
  const bool usual = !vision.has("deepstack_visual_indexes");
  const auto stacked =
      usual ? 3 : static_cast<std::int64_t>(vision.counts({"deepstack_visual_indexes"}).size());
  add_qwen3_tower(builder, vision, stacked, text.base.layers);
  add_text_model(builder, text);
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_qwen3_vl{
    .name = "qwen3_vl",
    .help = "Qwen3-VL: tower with attention within each frame, deep stack, Qwen3 or Qwen3-MoE",
    .types =
        "qwen3_vl Qwen3VLForConditionalGeneration qwen3_vl_moe Qwen3VLMoeForConditionalGeneration",
    .build = build,
    // Tower: D = 4, 1 head, F = 8, 1 block, patches of 3*1*2*2 = 12 values, merged 2x2, 9
    // positions, one merger of the deep stack. Text: one layer, h = 8, n = 2, g = 1, d = 4, f = 16,
    // V = 32; s = 576 + 4 = 580 with the default image of 48x48 = 2304 patches. Parameters: patches
    // 48 + 4, positions 36; block 172 as in qwen2_vl; mergers 2*(272 + 136) and norms 8 + 32 = 856;
    // text 1112 and norms of queries and keys 8: 2236. Forward: patches 221184; block 589824 and
    // attention 84934656; mergers 2*442368. Training: 2*221184 + 3*(589824 + 84934656 + 884736) =
    // 259670016. Text 19070400 as in qwen2_vl.
    .example = {
        .config = R"({"model_type": "qwen3_vl", "vision_config": {"hidden_size": 4, "depth": 1,
                             "num_heads": 1, "intermediate_size": 8, "patch_size": 2,
                             "temporal_patch_size": 1, "out_hidden_size": 8,
                             "num_position_embeddings": 9, "deepstack_visual_indexes": [0]},
                     "text_config": {"hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
                             "intermediate_size": 16, "vocab_size": 32}})",
        .parameters = 2236,
        .seq_len = 580,
        .training_flops = 278740416}};

}  // namespace flopmeter
