// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/catalog/convention.h>

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  Policy policy;
  policy.pairs = Policy::Pairs::op_stream;
  policy.attention_recomputes = true;
  Counted counted{.parts = price(model, batch, training, policy), .hardware = {}};
  const PartFlops total = counted.parts.total();
  counted.hardware = total.forward + total.backward + total.recompute;
  return counted;
}

}  // namespace

extern const Convention executed_plugin;
constinit const Convention executed_plugin{
    .name = "executed",
    .help = "what runs, op by op, as the op stream sees it; equal to a live count to the integer",
    .source = "docs/conventions.md",
    .count = count};

}  // namespace flopmeter
