// SPDX-License-Identifier: Apache-2.0
//
// FlopsCounter since 2026-01: 6 T (weights + 2 V h) + 6 L n d sum(s^2).  Windows are half of s
// min(s, W) pairs; the vision tower counts, its merger per patch, although it runs once per
// merged token.
#include <flopmeter/catalog/convention.h>

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  Policy policy;
  policy.pairs = Policy::Pairs::half;
  policy.windows_as_bands = true;
  policy.embedding_as_matmul = true;
  policy.merger_per_patch = true;
  policy.trainable_aware = false;
  return {.parts = flop_cost(model, batch, training, policy), .hardware = {}};
}

}  // namespace

extern constinit const Convention convention_verl_2026{
    .name = "verl-2026",
    .help = "matmuls with weights and the input embedding, causal half of attention",
    .source = "https://github.com/verl-project/verl/pull/4959",
    .count = count,
    .example = {.model_flops = 6 * (832 + 256) * 4 + 3 * 256}};

}  // namespace flopmeter
