// SPDX-License-Identifier: Apache-2.0
//
// Operators of libraries that the catalog does not know, whose names state that they multiply.
// recognize_op() finds them.
#include <flopmeter/catalog/op_rule.h>

#include <array>

namespace flopmeter {
namespace {

constexpr std::array rules = {
    OpRule{.name = "any::matmul", .flop_cost = unknown_cost, .open = true},
};

}  // namespace

extern constinit const OpFamily op_recognized_matmul{
    .name = "recognized_matmul",
    .help =
        "operators of any library with a name such as gemm, matmul, attention, or linear: "
        "operators inside are counted; without any, reported as unsupported",
    .source = "names that libraries of kernels use",
    .rules = rules,
    .examples = {}};

}  // namespace flopmeter
