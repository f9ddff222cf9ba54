// SPDX-License-Identifier: Apache-2.0
//
// torch.utils.flop_counter.FlopCounterMode: 2 m n k for every executed matmul, so frozen weights
// are right; fused attention counts all pairs, for any mask, and its backward is five matmuls
// (3 d_qk + 2 d_v), with recomputed scores.  Its total includes recomputation of checkpoints, which
// is hardware_flops here.
#include "../src/executed_work.h"

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  return executed_work(model, batch, training, Policy::Pairs::full);
}

}  // namespace

extern constinit const Convention convention_torch_flopcounter{
    .name = "torch-flopcounter",
    .help = "as FlopCounterMode prints: attention over all pairs, 3.5 x forward",
    .source = "https://github.com/pytorch/pytorch/blob/main/torch/utils/flop_counter.py",
    .count = count,
    .example = {.model_flops = 6 * 832 * 4 + 512 * 7 / 2}};

}  // namespace flopmeter
