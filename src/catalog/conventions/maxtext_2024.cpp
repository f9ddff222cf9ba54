// SPDX-License-Identifier: Apache-2.0
//
// calculate_tflops_training_per_device() until 2025-07-27: 3 x (2 T weights, router and logits
// included, + 4 s^2 n d per layer).  Frozen weights count like trained ones; the vision tower came
// later.
#include <flopmeter/catalog/convention.h>

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  Policy policy;
  policy.pairs = Policy::Pairs::full;
  policy.vision = false;
  policy.trainable_aware = false;
  return {.parts = flop_cost(model, batch, training, policy), .hardware = {}};
}

}  // namespace

extern constinit const Convention convention_maxtext_2024{
    .name = "maxtext-2024",
    .help = "matmuls with weights, and attention over all pairs",
    .source = "https://github.com/AI-Hypercomputer/maxtext/pull/537",
    .count = count,
    .example = {.model_flops = 6 * 832 * 4 + 3 * 512}};

}  // namespace flopmeter
