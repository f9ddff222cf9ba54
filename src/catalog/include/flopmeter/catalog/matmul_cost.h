// SPDX-License-Identifier: Apache-2.0
//
// FLOP cost of plain matmuls.  Inline, because a live counter computes it for every matmul of a
// training step.  The rules of src/catalog/ops/matmul.cpp are these functions.
#pragma once

#include <flopmeter/catalog/op_rule.h>

#include <cstdint>
#include <optional>

namespace flopmeter {

/// The elements of each matrix fit in 63 bits, so only the last multiplication needs more.  A
/// complex multiply-add is four real ones.
constexpr OpCost matmul_cost(
    std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, const Arg& a) {
  const std::int64_t outputs = batch * m * n;
  const std::int64_t elements = outputs + batch * k * (m + n);
  const std::int64_t multiply_adds = (a.complex ? 8 : 2) * outputs;
  const Flops work{WideInt{multiply_adds} * k};
  return {.executed = work, .model = work, .bytes = {WideInt{elements} * a.bits() / 8}};
}

/// [m, k] x [k, n], or batches of them if `rank` is 3; the factors are at positions `first` and
/// `first` + 1.
template <std::size_t first, int rank = 2>
constexpr std::optional<OpCost> matmul_cost(const OpCall& call) {
  if (call.args.size() < first + 2) return std::nullopt;
  const Arg& a = call.args[first];
  const Arg& b = call.args[first + 1];
  if (!a.is_tensor(rank) || !b.is_tensor(rank)) return std::nullopt;
  return matmul_cost(rank == 3 ? a[0] : 1, a[rank - 2], b[rank - 1], a[rank - 1], a);
}

}  // namespace flopmeter
