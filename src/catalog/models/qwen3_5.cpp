// SPDX-License-Identifier: Apache-2.0
//
// Qwen3.5: Qwen3-VL's tower without the deep stack, and a text model of gated delta nets and gated
// attention, with experts or without; the text model alone, too.
#include "../blocks/delta_decoder.h"
#include "../blocks/qwen3_tower.h"
#include "../blocks/text_model.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

DeltaDecoder read_text(const Config& config, const Config& text, bool experts) {
  const TextDefaults dense{.vocab = 248320,
                           .hidden = 4096,
                           .ffn = 12288,
                           .layers = 32,
                           .heads = 16,
                           .kv_heads = 4,
                           .head_dim = 256};
  const TextDefaults sparse{.vocab = 248320,
                            .hidden = 2048,
                            .ffn = 512,
                            .layers = 40,
                            .heads = 16,
                            .kv_heads = 2,
                            .head_dim = 256};
  const bool tied = config.flag_or({"tie_word_embeddings"}, false);
  SparseDecoder base;
  base.base = read_text_model(text, experts ? sparse : dense, tied);
  base.base.frame.tied = tied;  // overrides the key of the text
  if (experts && check_sizes(config, base.base)) {
    base.sparse.assign(static_cast<std::size_t>(base.base.layers), true);
    base.moe.hidden = base.base.frame.hidden;
    read_gated_experts(text, base.moe, 256, 8);
  }
  DeltaDecoder spec = read_delta_decoder(text, std::move(base));
  spec.delta.split = true;
  return spec;
}

Model build(const Config& config) {
  const bool dense_pair = is_type(config, "qwen3_5", "Qwen3_5ForConditionalGeneration");
  const bool sparse_pair = is_type(config, "qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration");
  const bool pair = dense_pair || sparse_pair;
  const bool experts = sparse_pair || is_type(config, "qwen3_5_moe_text", "Qwen3_5MoeForCausalLM");
  DeltaDecoder text = read_text(config, pair ? config.child("text_config") : config, experts);
  Decoder& decoder = text.base.base;
  if (!config.status()) return {};
  ModelBuilder builder;
  if (pair) {
    add_qwen3_tower(builder, config.child("vision_config"), 0, decoder.layers);
  } else {
    decoder.layer_prefix = "model.layers.";
    decoder.frame.prefix = "model.";
  }
  open_decoder(builder, decoder.frame);
  const std::size_t first = builder.model.runs.size();
  add_delta_layers(builder, text);
  builder.model.runs[first].joins_vision = pair;
  close_decoder(builder, decoder.frame);
  builder.model.facts.multimodal = pair;
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_qwen3_5{
    .name = "qwen3_5",
    .help = "Qwen3.5: vision tower, gated delta nets, gated attention, experts or none",
    .types =
        "qwen3_5 Qwen3_5ForConditionalGeneration qwen3_5_moe Qwen3_5MoeForConditionalGeneration "
        "qwen3_5_text Qwen3_5ForCausalLM qwen3_5_moe_text Qwen3_5MoeForCausalLM",
    .build = build,
    .random_config = {.type = "qwen3_5_text", .recurrent = true},
    // Tower as in qwen3_vl with one merger: parameters 52 + 36 + 172 + 416 = 676; training
    // 2*221184 + 3*(589824 + 84934656 + 442368) = 258342912. Text: two layers, the first linear; h
    // = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 580. Delta net as in qwen3_next 190, attention
    // 264, MLP 2*384, embedding and head 512, norms 5*8: 1774. Per token, forward: 2*(128 + 24 + 32
    // + 256 + 2*384 + 256) = 2928; delta rule 64; attention 168490 pairs x 2 heads x 2*(4+4) =
    // 5391680. Training: 3*(580*2992 + 5391680) = 21381120.
    .example = {
        .config = R"({"model_type": "qwen3_5", "vision_config": {"hidden_size": 4, "depth": 1,
                             "num_heads": 1, "intermediate_size": 8, "patch_size": 2,
                             "temporal_patch_size": 1, "out_hidden_size": 8,
                             "num_position_embeddings": 9},
                     "text_config": {"hidden_size": 8, "num_hidden_layers": 2,
                             "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
                             "intermediate_size": 16, "vocab_size": 32,
                             "full_attention_interval": 2, "linear_num_key_heads": 1,
                             "linear_num_value_heads": 2, "linear_key_head_dim": 2,
                             "linear_value_head_dim": 2, "linear_conv_kernel_dim": 3}})",
        .parameters = 2450,
        .seq_len = 580,
        .training_flops = 279724032}};

}  // namespace flopmeter
