// SPDX-License-Identifier: Apache-2.0
//
// FlopsProfiler: the forward pass as executed, backward (2 + recompute_fwd_factor) x forward; the
// factor is 1 under full recompute.  Attention has no mask.  The profiler also adds one to five
// FLOPs for each element of norms and activations, well under 1 % from h = 768 on, which are
// excluded here.
#include <flopmeter/catalog/convention.h>

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  Policy policy;
  policy.pairs = Policy::Pairs::full;
  policy.trainable_aware = false;
  Counted counted{.parts = flop_cost(model, batch, training, policy), .hardware = {}};
  const PartFlops total = counted.parts.total();
  counted.hardware = total.forward + total.backward;
  if (training.recompute == Recompute::full && !training.forward_only)
    *counted.hardware += total.forward;
  return counted;
}

}  // namespace

extern constinit const Convention convention_deepspeed{
    .name = "deepspeed",
    .help = "forward matmuls with attention over all pairs, times three",
    .source =
        "https://github.com/deepspeedai/DeepSpeed/blob/master/deepspeed/profiling/flops_profiler/"
        "profiler.py",
    .count = count,
    .example = {.model_flops = 6 * 832 * 4 + 3 * 512}};

}  // namespace flopmeter
