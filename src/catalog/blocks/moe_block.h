// SPDX-License-Identifier: Apache-2.0
//
// Mixture of experts, and decoders with dense and sparse layers, for the family files.  Private to
// the catalog.
#pragma once

#include "decoder.h"

#include <vector>

namespace flopmeter {

/// Router, routed experts with gate and up in one matrix, and shared experts.
struct MoeBlock {
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t latent = 0;  ///< routed experts run in this width, between two projections; 0: none
  std::int64_t experts = 0;
  std::int64_t active = 0;
  bool every_expert_runs = false;  ///< as in transformers: see Linear
  bool gated = true;               ///< experts have three matrices, else two
  bool router_bias = false;
  bool expert_bias = false;
  std::string_view router = "mlp.gate";
  std::string_view gate_up = "mlp.experts.gate_up_proj";
  std::string_view down = "mlp.experts.down_proj";
  std::string_view latent_down = "mlp.fc1_latent_proj";
  std::string_view latent_up = "mlp.fc2_latent_proj";
  std::string_view balance;     ///< name of the expert-balancing bias, if it is a parameter
  std::int64_t shared_ffn = 0;  ///< width of all shared experts; 0: none
  bool shared_bias = false;
  std::string_view shared_gate_proj = "mlp.shared_experts.gate_proj";
  std::string_view shared_up_proj = "mlp.shared_experts.up_proj";
  std::string_view shared_down_proj = "mlp.shared_experts.down_proj";
  std::string_view shared_gate;  ///< name of the gate of the shared expert; empty: none
};

Value moe_block(LayerBuilder& layer, Value x, const MoeBlock& spec);

/// Numbers of experts and of active experts, checked for consistency.
void read_experts(const Config& config,
                  MoeBlock& moe,
                  Config::Keys count_keys,
                  std::int64_t default_count,
                  std::int64_t default_active,
                  Config::Keys active_keys = {"num_experts_per_tok"});

/// A decoder whose layers have experts or a dense MLP, with or without a window.
struct SparseDecoder {
  Decoder base;  ///< with the MLP of the dense layers
  MoeBlock moe;
  std::vector<bool> sparse;  ///< by layer
  bool sinks = false;        ///< a learned score per head, without a key
};

/// Reads the sizes by LLaMA's names; experts in every layer.
SparseDecoder read_sparse_decoder(const Config& config, const DecoderDefaults& defaults = {});

Model build_sparse_decoder(const Config& config, const SparseDecoder& spec);

/// Layers, and the sizes for the conventions.
void add_sparse_layers(ModelBuilder& builder, const SparseDecoder& spec);

/// Qwen's rule: every `decoder_sparse_step`-th layer that is not in `mlp_only_layers`.
void read_sparse_layers(const Config& config, SparseDecoder& spec);

}  // namespace flopmeter
