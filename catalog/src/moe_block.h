// SPDX-License-Identifier: Apache-2.0
//
// Mixture of experts, and decoders whose layers differ in it, for the family files.  Private to the
// catalog.
#pragma once

#include "blocks.h"

#include <vector>

namespace flopmeter {

/// More layers than any model has: what a family that looks at each layer accepts.
inline constexpr std::int64_t max_layers = 1 << 16;

/// Router, routed experts with gate and up in one matrix, and experts that every token passes.
struct MoeBlock {
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t experts = 0;
  std::int64_t active = 0;
  bool router_bias = false;
  bool expert_bias = false;
  std::string_view router = "mlp.gate";
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
                  std::int64_t default_active);

/// A decoder with grouped attention in which each layer has experts or a dense MLP, and a window or
/// none.
struct SparseDecoder {
  AttentionBlock attention;
  MlpBlock mlp;
  MoeBlock moe;
  DecoderFrame frame;
  std::vector<bool> sparse;         ///< by layer
  std::vector<std::int64_t> window;  ///< by layer, 0 for none
  bool sinks = false;               ///< a learned score a head that takes no key
};

Model build(const SparseDecoder& spec);

/// Sizes of attention and of the frame under the names that LLaMA gave them.
SparseDecoder read_sparse_decoder(const Config& config);

/// By `layer_types`: the layers that are "sliding_attention" get `window`.
std::vector<std::int64_t> typed_windows(const Config& config,
                                        std::size_t layers,
                                        std::int64_t window);

/// Qwen's rule: every `decoder_sparse_step`-th layer that is not in `mlp_only_layers`.
std::vector<bool> stepped_sparse(const Config& config, std::size_t layers);

}  // namespace flopmeter
