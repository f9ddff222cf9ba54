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
    .help = "what runs, op by op, as the op stream sees it; equal to a live count to the integer",
    .source = "docs/conventions.md",
    .count = count};

}  // namespace flopmeter
