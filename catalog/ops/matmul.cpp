// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of the dispatcher: mm, bmm and their fused forms.
#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/catalog/operations.h>

#include <array>

namespace flopmeter {
namespace {

constexpr OpCost cost(const Matmul& op, const Arg& a) {
  const Flops work = (a.complex ? 4 : 1) * flops(op);
  return {.executed = work, .model = work, .bytes = bytes_moved(op, a.dtype)};
}

/// [m, k] x [k, n], the factors at positions `first` and `first` + 1.
template <std::size_t first>
std::optional<OpCost> product(const OpCall& call) {
  if (call.args.size() < first + 2) return std::nullopt;
  const Arg& a = call.args[first];
  const Arg& b = call.args[first + 1];
  if (!a.is_tensor(2) || !b.is_tensor(2)) return std::nullopt;
  return cost(Matmul{.m = a[0], .n = b[1], .k = a[1]}, a);
}

constexpr std::array<std::int64_t, 2> a23 = {2, 3};
constexpr std::array<std::int64_t, 2> b34 = {3, 4};
constexpr std::array mm_args = {Arg::tensor(a23), Arg::tensor(b34)};

constexpr std::array rules = {
    OpRule{.name = "aten::mm", .price = product<0>},
    OpRule{.name = "aten::addmm", .price = product<1>, .dtype_argument = 1},
};
constexpr std::array examples = {
    // 2 x 4 outputs, three multiply-adds each
    OpExample{
        .op = "aten::mm", .call = {.args = mm_args, .output = {}}, .executed = 48, .model = 48},
};

}  // namespace

extern const OpFamily matmul_plugin;
constinit const OpFamily matmul_plugin{
    .name = "matmul",
    .help = "2 m n k for each product of an m x k and a k x n matrix",
    .source = "definition: one multiply and one add a term",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
