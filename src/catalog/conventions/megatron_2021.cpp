// SPDX-License-Identifier: Apache-2.0
//
// F = 96 B s l h^2 (1 + s / 6h + V / 16lh) (Narayanan et al. 2021, equation 3): B sequences of s
// tokens, l layers, h wide with an MLP of 4h, V words.  The 96 includes full recomputation, so F is
// hardware FLOPs; without recomputation it is three quarters of that, as are the model FLOPs.
// Attention is over all pairs, without grouped heads.
#include "../src/closed_form.h"

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  const WideInt tokens = batch.tokens();
  const WideInt h = model.facts.hidden;
  const WideInt l = model.facts.layers;
  // F, multiplied out.
  const WideInt equation_3 = 96 * tokens * l * h * h + 16 * squared_lengths(batch) * l * h +
                             6 * tokens * h * model.facts.vocab;
  const Flops forward{equation_3 / 4};
  Counted counted;
  counted.parts[Component::parameters] = tripled(forward, training);
  const PartFlops total = counted.parts.total();
  counted.hardware = total.forward + total.backward;
  if (training.recompute == Recompute::full && !training.forward_only) *counted.hardware += forward;
  return counted;
}

}  // namespace

extern constinit const Convention convention_megatron_2021{
    .name = "megatron-2021",
    .help = "96 B s l h^2 (1 + s/6h + V/16lh) with full recompute, 72 without",
    .source = "https://arxiv.org/abs/2104.04473",
    .count = count,
    .example = {.model_flops = 3 * (24 * 4 * 64 + 4 * 16 * 8 + 3 * 4 * 8 * 32 / 2)}};

}  // namespace flopmeter
