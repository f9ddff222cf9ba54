// SPDX-License-Identifier: Apache-2.0
//
// Products with coordinate or compressed-row tensors: how many elements they hold, no shape tells.
#include <flopmeter/catalog/op_rule.h>

#include <array>

namespace flopmeter {
namespace {

constexpr std::array rules = {
    OpRule{.name = "aten::_sparse_sparse_matmul", .flop_cost = unknown_cost},
    OpRule{.name = "aten::_sparse_mm_reduce_impl", .flop_cost = unknown_cost},
    OpRule{.name = "aten::_sparse_mm_reduce_impl_backward", .flop_cost = unknown_cost},
    OpRule{.name = "aten::sparse_sampled_addmm", .flop_cost = unknown_cost},
    OpRule{.name = "aten::hspmm", .flop_cost = unknown_cost},
    OpRule{.name = "aten::sspaddmm", .flop_cost = unknown_cost},
};

}  // namespace

extern constinit const OpFamily op_sparse_layouts{
    .name = "sparse_layouts",
    .help =
        "no flop_cost: the shapes of coordinate and compressed-row tensors do not tell their work; "
        "calls are named as unknown",
    .source = "layouts as in torch.sparse",
    .rules = rules,
    .examples = {}};

}  // namespace flopmeter
