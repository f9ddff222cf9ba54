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
        "the default: matmul FLOPs the model needs, attention over the exact mask, backward by "
        "what is trainable",
    .source = "docs/conventions.md",
    .count = count};

}  // namespace flopmeter
