// SPDX-License-Identifier: Apache-2.0
#include "../src/executed_work.h"

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  return executed_work(model, batch, training, Policy::Pairs::op_stream);
}

}  // namespace

extern constinit const Convention convention_executed{
    .name = "executed",
    .help = "executed work, op by op; equal to a live count to the integer",
    .source = "docs/concepts/conventions.md",
    .count = count,
    .example = {.model_flops = 6 * 832 * 4 + 320 * 7 / 2}};

}  // namespace flopmeter
