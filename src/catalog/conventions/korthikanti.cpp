// SPDX-License-Identifier: Apache-2.0
//
// Model FLOPs 72 B L s h^2 (1 + s / 6h + V / 12hL); hardware FLOPs under selective recompute
// 72 B L s h^2 (1 + s / 3h + V / 12hL) (Korthikanti et al. 2022, appendix A).  Full recomputation
// repeats the layers, not the logits.  An MLP of 4h, attention over all pairs.
#include "../src/closed_form.h"

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  const WideInt tokens = batch.tokens();
  const WideInt h = model.facts.hidden;
  const WideInt l = model.facts.layers;
  const Flops weights{24 * tokens * l * h * h};
  const Flops attention{4 * squared_lengths(batch) * l * h};
  Counted counted;
  counted.parts[Component::parameters] = tripled(weights, training);
  counted.parts[Component::attention_core] = tripled(attention, training);
  counted.parts[Component::lm_head] = tripled({2 * tokens * h * model.facts.vocab}, training);
  const PartFlops total = counted.parts.total();
  counted.hardware = total.forward + total.backward;
  if (training.forward_only) return counted;
  // s / 6h becomes s / 3h: 12 B L s^2 h more, where one forward pass of the core is 4 B L s^2 h.
  if (training.recompute == Recompute::selective) *counted.hardware += 3 * attention;
  if (training.recompute == Recompute::full) *counted.hardware += weights + attention;
  return counted;
}

}  // namespace

extern constinit const Convention convention_korthikanti{
    .name = "korthikanti",
    .help = "72 B L s h^2 (1 + s/6h + V/12hL); hardware adds recomputation",
    .source = "https://arxiv.org/abs/2205.05198",
    .count = count,
    .example = {.model_flops = 3 * (24 * 4 * 64 + 4 * 16 * 8 + 2 * 4 * 8 * 32)}};

}  // namespace flopmeter
