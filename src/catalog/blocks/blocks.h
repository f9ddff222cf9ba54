// SPDX-License-Identifier: Apache-2.0
//
// Blocks of most transformers, for the family files.  Private to the catalog.
#pragma once

#include <flopmeter/catalog/config.h>
#include <flopmeter/catalog/model.h>

#include <string_view>

namespace flopmeter {

/// Product of two sizes; more than 2^40 is an error of the configuration.
std::int64_t product(const Config& config, std::int64_t a, std::int64_t b);

/// Names of the projections in a layer; if k and v are empty, q contains all three.
struct ProjectionNames {
  std::string_view q = "self_attn.q_proj";
  std::string_view k = "self_attn.k_proj";
  std::string_view v = "self_attn.v_proj";
  std::string_view o = "self_attn.o_proj";
};

/// Multi-head attention with grouped keys: projections, core, output.
struct AttentionBlock {
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool qkv_bias = false;
  bool out_bias = false;
  bool gated = false;       ///< a gate of the same size as the queries scales the result
  std::string_view q_norm;  ///< names of the norms of queries and keys; empty: none
  std::string_view k_norm;
  bool norm_whole_width = false;  ///< the norms span all heads
  bool norm_bias = false;
  MaskPairs mask{};
  bool mask_tensor = false;
  ProjectionNames names{};
};

Value attention_block(LayerBuilder& layer, Value x, const AttentionBlock& spec);

/// Two matrices, or three if gated; if gate is empty, up contains both.
struct MlpBlock {
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  bool gated = true;
  bool bias = false;
  std::string_view gate = "mlp.gate_proj";
  std::string_view up = "mlp.up_proj";
  std::string_view down = "mlp.down_proj";
  Component component = Component::mlp;
  Rows rows = Rows::tokens;
};

Value mlp_block(LayerBuilder& layer, Value x, const MlpBlock& spec);

/// Weight of a norm, and bias of LayerNorm.
Value norm(
    LayerBuilder& layer, Value x, std::string_view name, std::int64_t width, bool bias = false);

/// Sizes for the conventions, from an attention and an MLP block.
void set_facts(Model& model,
               const AttentionBlock& attention,
               std::int64_t layers,
               std::int64_t ffn,
               bool gated,
               std::int64_t vocab,
               bool tied);

/// Embedding and head of a decoder, around the layers that `layers` adds.
struct DecoderFrame {
  std::string_view prefix = "model.";  ///< before embed_tokens, norm
  std::string_view embed = "embed_tokens";
  std::string_view embed_positions;  ///< learned positions; empty: none
  std::string_view embed_norm;
  std::string_view final_norm = "norm";  ///< empty: none, or one without weights
  std::string_view head = "lm_head";
  std::int64_t hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t positions = 0;
  bool tied = false;
  bool norm_bias = false;
  bool head_bias = false;
};

void open_decoder(ModelBuilder& builder, const DecoderFrame& frame);
void close_decoder(ModelBuilder& builder, const DecoderFrame& frame);

}  // namespace flopmeter
