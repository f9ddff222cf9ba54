// SPDX-License-Identifier: Apache-2.0
//
// Matmuls with coordinate or compressed-row tensors, whose number of elements is not in their
// shapes.
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
        "not supported: the work of coordinate and compressed-row tensors is not in their shapes; "
        "calls are reported as unsupported",
    .source = "layouts as in torch.sparse",
    .rules = rules,
    .examples = {}};

}  // namespace flopmeter
