// SPDX-License-Identifier: Apache-2.0
//
// num_floating_point_operations() since core 0.12, with T tokens, h wide, n heads and g key groups
// of size d, f the MLP's width: 6 T L (h (n d + 2 g d) + n d h) + 6 L n d sum(s^2) + 6 T L h f (3
// gated | 2) + 6 T h V. Experts count top-k times, the router does not; prediction layers (MTP)
// count if the model has them; frozen weights count like trained ones.  Windows count the pairs
// that they keep, as in the results of Megatron-Bridge since 26.06; Megatron-LM itself counts every
// layer as full.  The vocabulary is the logical one; Megatron uses the
// padded one. Mamba layers count as if twice as wide as the model, independent of their heads, and
// without their convolution, which is included here: a thousandth of the layer.  The norms of
// latent attention and of prediction layers, which it counts like weights, are excluded.
#include <flopmeter/catalog/convention.h>

namespace flopmeter {
namespace {

/// FLOPs of a Mamba layer beyond its width: input and output projection, and the scan.
void widen_scans(Breakdown& parts, const ModelFacts& facts, WideInt tokens, bool forward_only) {
  const WideInt extra = 2 * WideInt{facts.hidden} - facts.scan_inner;
  const WideInt layer = extra * (6 * WideInt{facts.hidden} + 7 * WideInt{facts.scan_state});
  const Flops forward{tokens * facts.scan_layers * layer};
  parts[Component::linear_attention].forward += forward;
  if (!forward_only) parts[Component::linear_attention].backward += 2 * forward;
}

Counted count(const Model& model, const Batch& batch, const Training& training) {
  Policy policy;
  policy.pairs = Policy::Pairs::half;
  policy.router = false;
  policy.vision = false;
  policy.mtp = true;
  policy.trainable_aware = false;
  Counted counted{.parts = flop_cost(model, batch, training, policy), .hardware = {}};
  if (model.facts.scan_layers > 0)
    widen_scans(counted.parts, model.facts, batch.tokens(), training.forward_only);
  return counted;
}

}  // namespace

extern constinit const Convention convention_megatron{
    .name = "megatron",
    .help = "matmuls with weights without the router, causal half of attention; since core 0.12",
    .source = "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/training.py",
    .count = count,
    .example = {.model_flops = 6 * 832 * 4 + 3 * 256}};

}  // namespace flopmeter
