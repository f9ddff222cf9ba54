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
    .help = "what the kernels execute: recompute, flash attention's second score product",
    .source = "docs/conventions.md",
    .count = count};

}  // namespace flopmeter
