// SPDX-License-Identifier: Apache-2.0
#include "../src/executed_work.h"

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  return executed_work(model, batch, training, Policy::Pairs::kernel);
}

}  // namespace

extern constinit const Convention convention_hw_v1{
    .name = "hw-v1",
    .help =
        "work of the kernels, including recomputation and the recomputed scores of flash attention",
    .source = "docs/concepts/conventions.md",
    .count = count,
    .example = {.model_flops = 6 * 832 * 4 + 320 * 7 / 2}};

}  // namespace flopmeter
