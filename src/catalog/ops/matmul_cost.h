// SPDX-License-Identifier: Apache-2.0
//
// Common parts of the matmul families.
#pragma once

#include <flopmeter/catalog/matmul_cost.h>
#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/catalog/operations.h>

namespace flopmeter {

/// A product whose factors have the type of `a`.  A complex multiply-add is four real ones.
constexpr OpCost matmul_cost(const Matmul& op, const Arg& a) {
  const Flops work = flops(op);
  const Bytes bytes = bytes_moved(op, a.dtype);
  if (a.complex) return {.executed = 4 * work, .model = 4 * work, .bytes = 2 * bytes};
  return {.executed = work, .model = work, .bytes = bytes};
}

/// As many of them as gradients are wanted.
constexpr OpCost matmul_cost(const Matmul& op, const Arg& a, WideInt times) {
  const OpCost one = matmul_cost(op, a);
  return {.executed = times * one.executed, .model = times * one.model, .bytes = times * one.bytes};
}

/// Rows of [..., k].  Empty if there is no last dimension.
constexpr std::optional<Matmul> rows_times(const Arg& input, WideInt n) {
  if (!input.is_tensor() || input.rank == 0) return std::nullopt;
  Matmul op{.m = 1, .n = n, .k = input[-1]};
  for (int i = 0; i + 1 < input.rank; ++i) op.m *= input[i];
  return op;
}

/// How many of the first `count` gradients a list of flags asks for.
constexpr std::optional<WideInt> wanted_gradients(const Arg& mask, int count) {
  if (!mask.is_list() || mask.rank < count) return std::nullopt;
  WideInt wanted = 0;
  for (int i = 0; i < count; ++i) wanted += mask[i] != 0 ? 1 : 0;
  return wanted;
}

/// Example of a matmul that is cut into groups, which may end before the tensor does.
constexpr OpExample bounded_example(std::string_view op,
                                    std::string_view call,
                                    WideInt flops,
                                    WideInt bytes) {
  OpExample example = op_example(op, call, flops, bytes);
  example.bounded = true;
  return example;
}

}  // namespace flopmeter
