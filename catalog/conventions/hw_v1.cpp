// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/catalog/convention.h>

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  Policy policy;
  policy.pairs = Policy::Pairs::kernel;
  policy.attention_recomputes = true;
  Counted counted{.parts = price(model, batch, training, policy), .hardware = {}};
  const PartFlops total = counted.parts.total();
  counted.hardware = total.forward + total.backward + total.recompute;
  return counted;
}

}  // namespace

extern const Convention hw_v1_plugin;
constinit const Convention hw_v1_plugin{
    .name = "hw-v1",
    .help = "what the kernels execute: recompute, flash attention's second score product",
    .source = "docs/conventions.md",
    .count = count};

}  // namespace flopmeter
