// SPDX-License-Identifier: Apache-2.0
//
// Mixture of experts, and decoders whose layers differ in it, for the family files.  Private to the
// catalog.
#pragma once

#include "decoder.h"

#include <vector>

namespace flopmeter {

/// Router, routed experts with gate and up in one matrix, and experts that every token passes.
struct MoeBlock {
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t experts = 0;
  std::int64_t active = 0;
  bool every_expert_runs = false;  ///< as transformers has it: see Linear
  bool router_bias = false;
  bool expert_bias = false;
  std::string_view router = "mlp.gate";
  std::string_view gate_up = "mlp.experts.gate_up_proj";
  std::string_view down = "mlp.experts.down_proj";
  std::string_view balance;  ///< name, where a number an expert that balances them is a parameter
  std::int64_t shared_ffn = 0;  ///< width of all shared experts together, 0 for none
  bool shared_bias = false;
  std::string_view shared_gate_proj = "mlp.shared_experts.gate_proj";
  std::string_view shared_up_proj = "mlp.shared_experts.up_proj";
  std::string_view shared_down_proj = "mlp.shared_experts.down_proj";
  std::string_view shared_gate;  ///< name, where one more output weighs the shared expert
};

Value moe_block(LayerBuilder& layer, Value x, const MoeBlock& spec);

/// Experts and how many of them a token passes, checked against each other.
void read_experts(const Config& config,
                  MoeBlock& moe,
                  Config::Keys count_keys,
                  std::int64_t default_count,
                  std::int64_t default_active,
                  Config::Keys active_keys = {"num_experts_per_tok"});

/// A decoder in which each layer has experts or a dense MLP, and a window or none.
struct SparseDecoder {
  Decoder base;  ///< its MLP is that of the dense layers
  MoeBlock moe;
  std::vector<bool> sparse;  ///< by layer
  bool sinks = false;        ///< a learned score a head that takes no key
};

/// Sizes under the names that LLaMA gave them; experts in every layer.
SparseDecoder read_sparse_decoder(const Config& config, const DecoderDefaults& defaults = {});

Model build_sparse_decoder(const Config& config, const SparseDecoder& spec);

/// The layers, and the sizes that conventions ask for.
void add_sparse_layers(ModelBuilder& builder, const SparseDecoder& spec);

/// Qwen's rule: every `decoder_sparse_step`-th layer that is not in `mlp_only_layers`.
void read_sparse_layers(const Config& config, SparseDecoder& spec);

}  // namespace flopmeter
