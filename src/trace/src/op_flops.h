// SPDX-License-Identifier: Apache-2.0
//
// FLOPs of the operators in a trace, from the shapes of their inputs and the cost rules of the
// catalog.  Of nested operators the outermost with a cost counts; with device work in the trace, an
// operator that launched none counts nothing (captured graphs and meta tensors record operators
// that did not run).
#pragma once

#include "links.h"

#include <flopmeter/core/dtype.h>
#include <flopmeter/core/flop_counter.h>
#include <flopmeter/core/units.h>

#include <cstdint>
#include <string>
#include <vector>

namespace flopmeter {

/// The context of an operator.
struct OpContext {
  bool backward = false;   ///< inside an autograd node
  bool optimizer = false;  ///< inside `Optimizer.step`
};

/// One executed operator with a FLOP cost.
struct CountedOp {
  std::uint32_t event = 0;  ///< index of the host event
  Flops executed;
  Flops model;  ///< 0 if it is recomputation
  Bytes bytes;
  Dtype dtype = Dtype::other;  ///< that its kernels computed in
  AttentionPairs pairs = AttentionPairs::none;
  bool recompute = false;
  bool optimizer = false;  ///< not part of a closure that the optimizer calls
};

struct OpFlops {
  std::vector<CountedOp> ops;  ///< in no particular order
  std::vector<std::uint32_t>
      counted_as;  ///< of a host event: index into `ops` of the operator around it
  /// Of a host event: it is or is part of an operator with a FLOP cost.  If the trace has no
  /// shapes, names decide, and nothing is counted.
  std::vector<bool> supported;
  std::vector<OpContext> context;     ///< of a host event
  std::vector<std::uint32_t> failed;  ///< executed operators with a rule but unusable arguments
  bool unchecked = false;  ///< no kernel has a launch, so whether an operator ran is not known
};

OpFlops count_flops(const Trace& trace, const Links& links);

}  // namespace flopmeter
