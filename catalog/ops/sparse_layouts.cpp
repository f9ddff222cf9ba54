// SPDX-License-Identifier: Apache-2.0
//
// Products with coordinate or compressed-row tensors: how many elements they hold, no shape tells.
#include <flopmeter/catalog/op_rule.h>

#include <array>

namespace flopmeter {
namespace {

constexpr std::array rules = {
    OpRule{.name = "aten::_sparse_sparse_matmul", .price = untold_price},
    OpRule{.name = "aten::_sparse_mm_reduce_impl", .price = untold_price},
    OpRule{.name = "aten::_sparse_mm_reduce_impl_backward", .price = untold_price},
    OpRule{.name = "aten::sparse_sampled_addmm", .price = untold_price},
    OpRule{.name = "aten::hspmm", .price = untold_price},
    OpRule{.name = "aten::sspaddmm", .price = untold_price},
};

}  // namespace

extern const OpFamily sparse_layouts_plugin;
constinit const OpFamily sparse_layouts_plugin{
    .name = "sparse_layouts",
    .help =
        "no price: the shapes of coordinate and compressed-row tensors do not tell their work; "
        "calls are named as unknown",
    .source = "layouts as in torch.sparse",
    .rules = rules,
    .examples = {}};

}  // namespace flopmeter
