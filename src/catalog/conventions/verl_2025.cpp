// SPDX-License-Identifier: Apache-2.0
//
// FlopsCounter until 2026-01: 6 T (weights + 2 V h) + 12 L n d sum(s^2): the embedding's gather
// counts as a matmul. Windows are s min(s, W) pairs; with latent attention both matmuls are as wide
// as the keys.
#include <flopmeter/catalog/convention.h>

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  Policy policy;
  policy.pairs = Policy::Pairs::full;
  policy.windows_as_bands = true;
  policy.values_as_keys = true;
  policy.embedding_as_matmul = true;
  policy.vision = false;
  policy.trainable_aware = false;
  return {.parts = flop_cost(model, batch, training, policy), .hardware = {}};
}

}  // namespace

extern constinit const Convention convention_verl_2025{
    .name = "verl-2025",
    .help = "matmuls with weights and the input embedding, attention over all pairs",
    .source = "https://github.com/verl-project/verl/issues/1076",
    .count = count,
    .example = {.model_flops = 6 * (832 + 256) * 4 + 3 * 512}};

}  // namespace flopmeter
