// SPDX-License-Identifier: Apache-2.0
//
// Operators of libraries that the catalog does not know, whose names state that they multiply.
// recognize_op() finds them.  torch's attention over packed sequences calls its own kernels, which
// have rules.
#include <flopmeter/catalog/op_rule.h>

#include <array>

namespace flopmeter {
namespace {

constexpr OpRule open(std::string_view name) {
  return {.name = name, .flop_cost = unknown_cost, .open = true};
}
constexpr std::array rules = {
    open("any::matmul"),
    open("torch_attn::_varlen_attn"),
    open("torch_attn::_varlen_attn_out"),
    open("torch_attn::_varlen_attn_backward"),
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
