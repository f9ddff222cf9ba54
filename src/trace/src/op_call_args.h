// SPDX-License-Identifier: Apache-2.0
//
// The arguments of an operator call as a trace states them: "Input Dims", "Input type", and
// "Concrete Inputs", each a JSON list with one entry per argument.
#pragma once

#include <flopmeter/catalog/op_rule.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// A call and the memory that its arguments refer to.
class OpCallArgs {
 public:
  OpCallArgs(std::string_view dims, std::string_view types, std::string_view concrete);
  OpCallArgs(const OpCallArgs&) = delete;
  OpCallArgs& operator=(const OpCallArgs&) = delete;
  OpCallArgs(OpCallArgs&&) = delete;
  OpCallArgs& operator=(OpCallArgs&&) = delete;
  ~OpCallArgs() = default;

  [[nodiscard]] OpCall call() const { return {.args = args_, .output = {}}; }

  /// The extents of the tensors: "[512,256] [256,1024]".
  [[nodiscard]] std::string shapes() const;

 private:
  Arg tensor(std::string_view dims, std::string_view type);
  Arg scalar(std::string_view text);

  std::vector<Arg> args_;
  std::deque<std::vector<std::int64_t>> values_;  // deques keep what they hold in place
  std::deque<std::vector<Arg>> items_;
};

}  // namespace flopmeter
