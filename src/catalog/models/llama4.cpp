// SPDX-License-Identifier: Apache-2.0
//
// Llama 4: experts in all layers or in every few, one shared; attention within chunks where there
// are rotary positions; a vision tower with pixel shuffle before the text model, or none.
#include "../blocks/text_model.h"
#include "../blocks/vision_block.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

constexpr auto vision_stream = ModelBuilder::Stream::vision;

void add_tower(ModelBuilder& builder, const Config& vision, std::int64_t hidden) {
  const std::int64_t width = vision.size_or({"hidden_size"}, 768);
  const std::int64_t patch = vision.size_or({"patch_size"}, 14);
  const std::int64_t side = vision.size_or({"image_size"}, 448) / patch;
  const VisionLayer tower_layer{.width = width,
                                .heads = vision.size_or({"num_attention_heads"}, 16),
                                .ffn = vision.size_or({"intermediate_size"}, 5632),
                                .norm1 = "input_layernorm",
                                .norm2 = "post_attention_layernorm",
                                .names = {},
                                .up = "mlp.fc1",
                                .down = "mlp.fc2"};
  check_tower(vision, tower_layer);
  const std::int64_t patches = product(vision, side, side);
  const double ratio = vision.number_or({"pixel_shuffle_ratio"}, 0.5);
  builder.model.vision = {
      .kind = VisionPlan::Kind::fixed,
      .patches = patches,
      .class_tokens = 1,
      .visual_tokens = static_cast<std::int64_t>(static_cast<double>(patches) * ratio * ratio)};
  builder.once(
      "vision_model.",
      [&](LayerBuilder& layer) {
        const std::int64_t pixels =
            product(vision, vision.size_or({"num_channels"}, 3), product(vision, patch, patch));
        Value x = vision_linear(layer,
                                LayerBuilder::input(),
                                "patch_embedding.linear",
                                pixels,
                                width,
                                Rows::patches,
                                /*bias=*/false);
        x = layer.parameters(x, "class_embedding", width);
        x = layer.parameters(x, "positional_embedding_vlm", (WideInt{patches} + 1) * width);
        layer.output(norm(layer, x, "layernorm_pre", width, /*bias=*/true));
      },
      vision_stream);
  builder.layers(
      "vision_model.model.layers.",
      read_tower_layers(vision, {"num_hidden_layers"}, 34),
      [&](LayerBuilder& layer) { vision_layer(layer, tower_layer, AttentionSpec::Over::images); },
      vision_stream);
  builder.once(
      "",
      [&](LayerBuilder& layer) {
        const std::int64_t in = vision.size_or({"projector_input_dim"}, 4096);
        const std::int64_t out = vision.size_or({"projector_output_dim"}, 4096);
        const auto project =
            [&](Value x, std::string_view name, std::int64_t from, std::int64_t to) {
              return vision_linear(layer, x, name, from, to, Rows::visual, /*bias=*/false);
            };
        Value x =
            norm(layer, LayerBuilder::input(), "vision_model.layernorm_post", width, /*bias=*/true);
        x = project(x, "vision_model.vision_adapter.mlp.fc1", tower_layer.ffn, in);
        x = project(x, "vision_model.vision_adapter.mlp.fc2", out, out);
        layer.output(project(x,
                             "multi_modal_projector.linear_1",
                             vision.size_or({"vision_output_dim"}, 7680),
                             hidden));
      },
      vision_stream);
}

/// Layers with rotary positions attend within chunks: three of four, unless the file specifies
/// otherwise.
std::vector<int> read_chunked(const Config& text, std::int64_t layers) {
  std::vector<int> chunked;
  for (const std::string& type : text.texts({"layer_types"}))
    chunked.push_back(type == "chunked_attention" ? 1 : 0);
  const auto rotary = text.counts({"no_rope_layers"});
  const std::int64_t every = text.size_or({"no_rope_layer_interval"}, 4);
  for (auto i = chunked.size(); i < static_cast<std::size_t>(layers); ++i) {
    const bool usual = (static_cast<std::int64_t>(i) + 1) % every != 0;
    chunked.push_back((i < rotary.size() ? rotary[i] != 0 : usual) ? 1 : 0);
  }
  return chunked;
}

void read_experts(const Config& text, SparseDecoder& spec) {
  MoeBlock& moe = spec.moe;
  moe.hidden = spec.base.frame.hidden;
  moe.ffn = moe.shared_ffn = text.size_or({"intermediate_size"}, 8192);
  moe.router = "feed_forward.router";
  moe.gate_up = "feed_forward.experts.gate_up_proj";
  moe.down = "feed_forward.experts.down_proj";
  moe.shared_gate_proj = "feed_forward.shared_expert.gate_proj";
  moe.shared_up_proj = "feed_forward.shared_expert.up_proj";
  moe.shared_down_proj = "feed_forward.shared_expert.down_proj";
  moe.every_expert_runs = true;
  read_experts(text, moe, {"num_local_experts"}, 16, 1);
  const auto step = static_cast<std::size_t>(text.size_or({"interleave_moe_layer_step"}, 1));
  const auto listed = text.counts({"moe_layers"});
  const bool by_list = text.has("moe_layers");
  for (std::size_t i = 0; i < spec.sparse.size(); ++i)
    spec.sparse[i] = !by_list && (i + 1) % step == 0;
  for (const std::int64_t layer : listed) {
    if (layer < spec.base.layers) spec.sparse[static_cast<std::size_t>(layer)] = true;
  }
}

SparseDecoder read_text(const Config& text, bool nested) {
  const TextDefaults defaults{
      .vocab = 202048, .hidden = 5120, .ffn = 8192, .layers = 48, .heads = 40, .kv_heads = 8};
  SparseDecoder spec;
  Decoder& base = spec.base;
  base = read_text_model(text, defaults, /*tied=*/false);
  base.attention.head_dim = text.size_or({"head_dim"}, 128);
  base.mlp.ffn = text.size_or({"intermediate_size_mlp"}, 16384);
  base.mlp.gate = "feed_forward.gate_proj";
  base.mlp.up = "feed_forward.up_proj";
  base.mlp.down = "feed_forward.down_proj";
  base.frame.prefix = nested ? "language_model.model." : "model.";
  base.frame.head = nested ? "language_model.lm_head" : "lm_head";
  base.layer_prefix = nested ? "language_model.model.layers." : "model.layers.";
  if (!check_sizes(text, base)) return spec;
  if (!text.is_null("attention_chunk_size")) {
    base.window = text.size_or({"attention_chunk_size"}, 8192);
    base.windowed = read_chunked(text, base.layers);
    base.local = MaskPairs::Shape::chunk;
  }
  spec.sparse.assign(static_cast<std::size_t>(base.layers), true);
  read_experts(text, spec);
  return spec;
}

Model build(const Config& config) {
  const bool nested = is_type(config, "llama4", "Llama4ForConditionalGeneration");
  const SparseDecoder text = read_text(nested ? config.child("text_config") : config, nested);
  if (!config.status()) return {};
  if (!nested) return build_sparse_decoder(config, text);
  ModelBuilder builder;
  add_tower(builder, config.child("vision_config"), text.base.frame.hidden);
  add_text_model(builder, text);
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_llama4{
    .name = "llama4",
    .help = "Llama 4: attention in chunks, routed experts and one shared, with vision or without",
    .types = "llama4_text Llama4ForCausalLM llama4 Llama4ForConditionalGeneration",
    .build = build,
    .random_config = {.experts = RandomConfig::Experts::of_mlp_width,
                      .shared = RandomConfig::Shared::one,
                      .keys = R"("attention_chunk_size": null)"},
    // One layer, h = 8, n = 2, g = 1, d = 4, V = 32, 4 experts of f = 4 and 1 active, one shared,
    // chunks of 2, s = 4. Parameters: embedding and head 512; q, o 64 each; k, v 32 each; router
    // 32; experts 4*96; shared 96; norms 24: 1240. Per token, forward: 2*(192 + 32 + 96 + 96 + 256)
    // = 1344; attention: 2*3 pairs x 2 heads x 2*(4+4) = 192. Training: 3*(4*1344 + 192).
    .example = {.config = R"({"model_type": "llama4_text", "hidden_size": 8,
                             "num_hidden_layers": 1, "num_attention_heads": 2,
                             "num_key_value_heads": 1, "head_dim": 4, "intermediate_size": 4,
                             "vocab_size": 32, "num_local_experts": 4, "attention_chunk_size": 2})",
                .parameters = 1240,
                .seq_len = 4,
                .training_flops = 16704}};

}  // namespace flopmeter
