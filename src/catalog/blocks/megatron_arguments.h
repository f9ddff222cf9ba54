// SPDX-License-Identifier: Apache-2.0
//
// Sizes in the words of Megatron's arguments, for its families.  Private to the catalog.
#pragma once

#include "deepseek.h"
#include "recurrent_block.h"

namespace flopmeter {

/// A GPT's sizes and names; missing arguments have Megatron's defaults.  The number of layers is
/// not read.
Decoder read_megatron_decoder(const Config& config);

/// Routed and shared experts.
MoeBlock read_megatron_experts(const Config& config, const Decoder& decoder);

/// Multi-head latent attention.
LatentAttention read_megatron_latent_attention(const Config& config, const Decoder& decoder);

/// Gated delta net.
DeltaNetBlock read_megatron_delta_net(const Config& config, std::int64_t hidden);

/// Layers that fp8 and fp4 recipes leave in bf16.
void read_megatron_wide_layers(const Config& config, ModelFacts& facts);

}  // namespace flopmeter
