// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of traces without "Concrete Inputs" (torch before 2.1): strides and padding are not
// stated, so the shape of a result is known only from the backward pass, which takes its gradient.
#pragma once

#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/trace/trace.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace flopmeter {

/// Whether `name` is a convolution's backward pass that torch before 1.11 calls.
bool is_old_convolution_backward(std::string_view name);

/// Whether `name` is a convolution's forward or backward pass: its FLOPs depend on strides,
/// padding, and flags, which shapes alone do not state.
bool is_convolution(std::string_view name);

class OldConvolutions {
 public:
  /// Learns the results of all convolutions in the trace.
  explicit OldConvolutions(const Trace& trace);

  /// The cost of a forward convolution with arguments (input, weight, …); empty if no backward pass
  /// shows the shape of its result, or if two show different ones.
  [[nodiscard]] std::optional<OpCost> forward(const OpCall& call) const;

  /// The cost of the backward pass `event`: one convolution per gradient that it calls for.
  [[nodiscard]] static std::optional<OpCost> backward(const Trace& trace,
                                                      std::uint32_t event,
                                                      const OpCall& call);

 private:
  std::map<std::string, std::optional<OpCost>> by_shapes_;  // empty: contradictory
};

}  // namespace flopmeter
