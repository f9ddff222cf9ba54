// SPDX-License-Identifier: Apache-2.0
//
// Layers with a fixed-size state, for the family files.  Private to the catalog.
#pragma once

#include "blocks.h"

namespace flopmeter {

/// Names in a layer; an empty norm: none.
struct Mamba2Names {
  std::string_view in_proj = "mixer.in_proj";
  std::string_view conv = "mixer.conv1d";
  std::string_view dt_bias = "mixer.dt_bias";
  std::string_view a_log = "mixer.A_log";
  std::string_view d = "mixer.D";
  std::string_view scan = "mixer";
  std::string_view norm = "mixer.norm";
  std::string_view out_proj = "mixer.out_proj";
};

/// Mamba-2: one input projection, a short causal convolution per channel, the scan, a gated norm,
/// and an output projection.
struct Mamba2Block {
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t groups = 0;
  std::int64_t state = 0;
  std::int64_t kernel = 0;
  bool bias = false;
  bool out_bias = false;
  bool conv_bias = true;
  Mamba2Names names{};
};

/// Gated delta net: projections, a short causal convolution per channel, the delta rule, a gated
/// norm per head, and an output projection, with Qwen's names.
struct DeltaNetBlock {
  std::int64_t hidden = 0;
  std::int64_t key_heads = 0;
  std::int64_t value_heads = 0;
  std::int64_t d_k = 0;
  std::int64_t d_v = 0;
  std::int64_t kernel = 0;
  bool split = false;  ///< four input projections, not two
};

void check_delta_net(const Config& config, const DeltaNetBlock& spec);

Value delta_net_block(LayerBuilder& layer, Value x, const DeltaNetBlock& spec);

/// An excessive product of sizes becomes an error of the configuration.
void check_mamba2(const Config& config, const Mamba2Block& spec);

Value mamba2_block(LayerBuilder& layer, Value x, const Mamba2Block& spec);

}  // namespace flopmeter
