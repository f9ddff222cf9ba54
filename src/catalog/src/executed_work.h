// SPDX-License-Identifier: Apache-2.0
//
// Work as it is executed: recompute and flash attention's second score product included.  Private
// to the catalog.
#pragma once

#include <flopmeter/catalog/convention.h>

namespace flopmeter {

/// `pairs` says whether a mask tensor makes a fused attention compute every pair.
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
