// SPDX-License-Identifier: Apache-2.0
//
// flops(): 4 s^2 n d per layer forward, half of it if causal; backward 2.5 x forward, because
// the scores are recomputed.  A kernel benchmark: no other layer counts.
#include "../src/closed_form.h"

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  Counted counted;
  PartFlops& part = counted.parts[Component::attention_core];
  part = attention_term(model, batch, training, Policy::Pairs::half);
  if (!training.forward_only) part.backward = {5 * part.forward.value / 2};
  counted.hardware = part.forward + part.backward;
  return counted;
}

}  // namespace

extern constinit const Convention convention_flash_attn{
    .name = "flash-attn",
    .help = "attention kernels only: causal half, backward 2.5 x forward",
    .source =
        "https://github.com/Dao-AILab/flash-attention/blob/main/benchmarks/"
        "benchmark_flash_attention.py",
    .count = count,
    .example = {.model_flops = 256 + 256 * 5 / 2}};

}  // namespace flopmeter
