// SPDX-License-Identifier: Apache-2.0
//
// llm-foundry's MFU: 6 N + 12 L d T per token over all parameters, d the width, attention over all
// pairs.
#include "../src/closed_form.h"

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  const WideInt n = count_parameters(model).active;
  Counted counted = parameters_and_attention(model, batch, training, n, Policy::Pairs::full);
  const PartFlops total = counted.parts.total();
  counted.hardware = total.forward + total.backward;
  // Activation checkpointing repeats forward: 8 N instead of 6 N.
  if (training.recompute == Recompute::full && !training.forward_only)
    *counted.hardware += total.forward;
  return counted;
}

}  // namespace

extern constinit const Convention convention_mosaic{
    .name = "mosaic",
    .help = "6 N + 12 L d T per token; HFU is 4/3 of MFU with full recomputation",
    .source =
        "https://github.com/mosaicml/llm-foundry/blob/main/scripts/train/benchmarking/README.md",
    .count = count,
    .example = {.model_flops = 6 * 1112 * 4 + 3 * 512}};

}  // namespace flopmeter
