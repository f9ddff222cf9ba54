// SPDX-License-Identifier: Apache-2.0
//
// Operator calls as text, for examples, tests, and the command line: "bf16[2,3] - (1,1) 0 -> [2,4]"
// is a tensor, a missing argument, a list, and a number or flag, with the result.  "{[2,3] [4,5]}"
// is a list of tensors; a tensor is fp32 by default ("complex[7]": complex fp32, "int32[5]": a type
// without a compute dtype).
#pragma once

#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/core/result.h>

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

namespace flopmeter {

/// A call and the memory it refers to.
class OwnedOpCall {
 public:
  [[nodiscard]] OpCall call() const { return {.args = args_, .output = output_}; }

  friend Result<OwnedOpCall> parse_op_call(std::string_view text);

 private:
  std::vector<Arg> args_;
  Arg output_;
  std::deque<std::vector<std::int64_t>>
      values_;  // deques keep pointers valid when they grow or move
  std::deque<std::vector<Arg>> items_;
};

Result<OwnedOpCall> parse_op_call(std::string_view text);

}  // namespace flopmeter
