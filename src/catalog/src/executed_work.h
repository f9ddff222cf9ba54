// SPDX-License-Identifier: Apache-2.0
//
// Executed work, including recomputation and the scores that flash attention recomputes.  Private
// to the catalog.
#pragma once

#include <flopmeter/catalog/convention.h>

namespace flopmeter {

/// `pairs` selects whether a fused attention with a mask tensor computes every pair.
inline Counted executed_work(const Model& model,
                             const Batch& batch,
                             const Training& training,
                             Policy::Pairs pairs) {
  Policy policy;
  policy.pairs = pairs;
  policy.attention_recomputes = true;
  Counted counted{.parts = flop_cost(model, batch, training, policy), .hardware = {}};
  const PartFlops total = counted.parts.total();
  counted.hardware = total.forward + total.backward + total.recompute;
  return counted;
}

}  // namespace flopmeter
