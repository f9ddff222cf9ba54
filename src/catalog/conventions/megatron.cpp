// SPDX-License-Identifier: Apache-2.0
//
// num_floating_point_operations() since core 0.12, with T tokens, h wide, n heads and g key groups
// of size d, f the MLP's width: 6 T L (h (n d + 2 g d) + n d h) + 6 L n d sum(s^2) + 6 T L h f (3
// gated | 2) + 6 T h V. Experts count top-k times, the router does not; prediction layers (MTP)
// count if the model has them; frozen weights count like trained ones.  Layers with a window count
// as full.  The vocabulary is the logical one; Megatron uses the padded one.
#include "../src/megatron_form.h"

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  return megatron_form(model, batch, training, MegatronWindows::ignored);
}

}  // namespace

extern constinit const Convention convention_megatron{
    .name = "megatron",
    .help = "matmuls with weights without the router, causal half of attention; since core 0.12",
    .source = "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/training.py",
    .count = count,
    .example = {.model_flops = 6 * 832 * 4 + 3 * 256}};

}  // namespace flopmeter
