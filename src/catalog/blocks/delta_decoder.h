// SPDX-License-Identifier: Apache-2.0
//
// What Qwen3-Next and Qwen3.5 share: gated delta nets in three layers of four, attention with a
// gate in the others.  Private to the catalog.
#pragma once

#include "moe_block.h"
#include "recurrent_block.h"

#include <vector>

namespace flopmeter {

struct DeltaDecoder {
  SparseDecoder base;
  DeltaNetBlock delta;
  std::vector<int> linear;  ///< by layer: 1 a delta net, 0 attention
};

/// Gates, norms, delta nets and the order of layers, for a decoder whose sizes are `base`.
DeltaDecoder read_delta_decoder(const Config& config, SparseDecoder base);

/// Routed experts and the shared one that a gate weighs.
void read_gated_experts(const Config& config,
                        MoeBlock& moe,
                        std::int64_t default_count,
                        std::int64_t default_active);

/// The layers, and the sizes that conventions ask for.
void add_delta_layers(ModelBuilder& builder, const DeltaDecoder& spec);

}  // namespace flopmeter
