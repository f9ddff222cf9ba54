// SPDX-License-Identifier: Apache-2.0
//
// torch.utils.flop_counter.FlopCounterMode: 2 m n k for every product that runs, so frozen weights
// are right; fused attention counts all pairs, whatever the mask, and its backward is five products
// (3 d_qk + 2 d_v), with the scores computed again.  What a checkpoint recomputes is in the total
// it prints: that is hardware_flops here.
#include <flopmeter/catalog/convention.h>

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  Policy policy;
  policy.pairs = Policy::Pairs::full;
  policy.attention_recomputes = true;
  Counted counted{.parts = flop_cost(model, batch, training, policy), .hardware = {}};
  const PartFlops total = counted.parts.total();
  counted.hardware = total.forward + total.backward + total.recompute;
  return counted;
}

}  // namespace

extern constinit const Convention convention_torch_flopcounter{
    .name = "torch-flopcounter",
    .help = "what FlopCounterMode prints: attention over all pairs, 3.5 x forward",
    .source = "https://github.com/pytorch/pytorch/blob/main/torch/utils/flop_counter.py",
    .count = count};

}  // namespace flopmeter
