// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/catalog/convention.h>

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  return {.parts = flop_cost(model, batch, training, Policy{}), .hardware = {}};
}

}  // namespace

extern constinit const Convention convention_model_v1{
    .name = "model-v1",
    .help =
        "default: required matmul FLOPs, attention over the exact mask, backward of the trainable "
        "parameters",
    .source = "docs/concepts/conventions.md",
    .count = count,
    .example = {.model_flops = 6 * 832 * 4 + 3 * 320}};

}  // namespace flopmeter
