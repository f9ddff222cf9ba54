// SPDX-License-Identifier: Apache-2.0
//
// calculate_tflops_training_per_device() since 2025-07-27: as maxtext-2024 with attention 2 s^2 n d
// a layer; windows count what they leave.
#include <flopmeter/catalog/convention.h>

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  Policy policy;
  policy.pairs = Policy::Pairs::half;
  policy.vision = false;
  policy.trainable_aware = false;
  return {.parts = flop_cost(model, batch, training, policy), .hardware = {}};
}

}  // namespace

extern constinit const Convention convention_maxtext_2025{
    .name = "maxtext-2025",
    .help = "matmuls with weights, and the causal half of attention",
    .source = "https://github.com/AI-Hypercomputer/maxtext/pull/1988",
    .count = count,
    .example = {.model_flops = 6 * 832 * 4 + 3 * 256}};

}  // namespace flopmeter
