// SPDX-License-Identifier: Apache-2.0
//
// Product of three tensors, used by bilinear layers and their gradients: first of the first two,
// summed over the dimensions that the third does not have, then with the third.
#include <flopmeter/catalog/op_rule.h>

#include <algorithm>
#include <array>

namespace flopmeter {
namespace {

constexpr bool contains(const Arg& list, int value) {
  return std::find(list.values, list.values + list.rank, value) != list.values + list.rank;
}

/// The extent of a factor along dimension `d` of the whole; 1 if it is expanded.
constexpr std::int64_t extent(const Arg& factor, const Arg& expanded, int d) {
  if (contains(expanded, d)) return 1;
  int own = d;
  for (int before = 0; before < d; ++before) own -= contains(expanded, before) ? 1 : 0;
  return factor[own];
}

/// i1, i2, i3, the dimensions each is expanded along, the dimensions to sum over.
std::optional<OpCost> flop_cost(const OpCall& call) {
  const std::array factors = {call.arg(0), call.arg(1), call.arg(2)};
  const std::array expanded = {call.arg(3), call.arg(4), call.arg(5)};
  const Arg summed = call.arg(6);
  if (!summed.is_list() || !factors[0].is_tensor() || !expanded[0].is_list()) return std::nullopt;
  const int rank = factors[0].rank + expanded[0].rank;
  for (std::size_t i = 0; i < 3; ++i) {
    if (!factors[i].is_tensor() || !expanded[i].is_list()) return std::nullopt;
    int own = rank;
    for (int d = 0; d < rank; ++d) own -= contains(expanded[i], d) ? 1 : 0;
    if (own != factors[i].rank) return std::nullopt;
  }

  WideInt first = 1;
  WideInt second = 1;
  WideInt result = 1;
  bool first_sums = false;
  bool second_sums = false;
  for (int d = 0; d < rank; ++d) {
    const std::int64_t pair =
        std::max(extent(factors[0], expanded[0], d), extent(factors[1], expanded[1], d));
    const std::int64_t third = extent(factors[2], expanded[2], d);
    const bool sum = contains(summed, d);
    const bool early = sum && contains(expanded[2], d);
    first_sums = first_sums || early;
    second_sums = second_sums || (sum && !early);
    first *= pair;
    second *= early ? 1 : std::max(pair, third);
    result *= sum ? 1 : std::max(pair, third);
  }
  // Without a sum a product is elementwise.
  const Flops work{(first_sums ? 2 * first : 0) + (second_sums ? 2 * second : 0)};
  const WideInt elements =
      factors[0].elements() + factors[1].elements() + factors[2].elements() + result;
  return OpCost{.executed = work, .model = work, .bytes = {elements * factors[0].bits() / 8}};
}

constexpr std::array rules = {OpRule{.name = "aten::_trilinear", .flop_cost = flop_cost}};

constexpr std::array examples = {
    // bilinear on 5 rows of 2 and 3 inputs with 4 outputs, dimensions (row, output, first, second):
    // 5 x 4 x 2 x 3 multiply-adds with the weight, 5 x 4 x 3 with the second input; 10 + 24 + 15 +
    // 20 elements
    op_example("aten::_trilinear", "[5,2] [4,2,3] [5,3] (1,3) (0) (1,2) (2,3) 1", 360, 276),
    // the gradient of its weight: 5 x 4 x 2 elementwise, then 5 x 4 x 2 x 3 summed over rows
    op_example("aten::_trilinear", "[5,2] [5,4] [5,3] (1,3) (2,3) (1,2) (0) 1", 240, 276),
};

}  // namespace

extern constinit const OpFamily op_trilinear{
    .name = "trilinear",
    .help = "2 FLOPs per term of each of the two sums; without a sum they are elementwise",
    .source = "torch.nn.Bilinear and its gradients as ATen/native/Linear.cpp computes them",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
