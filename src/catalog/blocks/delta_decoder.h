// SPDX-License-Identifier: Apache-2.0
//
// Parts of Qwen3-Next and Qwen3.5: gated delta nets in three of four layers, gated attention in the
// others.  Private to the catalog.
#pragma once

#include "moe_block.h"
#include "recurrent_block.h"

#include <vector>

namespace flopmeter {

struct DeltaDecoder {
  SparseDecoder base;
  DeltaNetBlock delta;
  std::vector<int> linear;  ///< by layer: 1: delta net, 0: attention
};

/// Gates, norms, delta nets, and the order of layers, for a decoder with the sizes of `base`.
DeltaDecoder read_delta_decoder(const Config& config, SparseDecoder base);

/// Routed experts and a gated shared expert.
void read_gated_experts(const Config& config,
                        MoeBlock& moe,
                        std::int64_t default_count,
                        std::int64_t default_active);

/// Layers, and the sizes for the conventions.
void add_delta_layers(ModelBuilder& builder, const DeltaDecoder& spec);

}  // namespace flopmeter
