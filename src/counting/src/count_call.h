// SPDX-License-Identifier: Apache-2.0
//
// FlopmeterOp::count: from the arguments of a call to this thread's counters.
#pragma once

#include <flopmeter/adapter_abi.h>
#include <flopmeter/catalog/op_rule.h>

namespace flopmeter {

using CountFunction = void (*)(const FlopmeterOp*, const FlopmeterCall*);

CountFunction count_function(const OpRule& rule);
/// Whether a rule may read the output of a call.  Plain matmuls do not, which keeps them cheap.
bool reads_output(const OpRule& rule);

void count_by_user_rule(const FlopmeterOp* op, const FlopmeterCall* call) noexcept;
void add_unsupported(const FlopmeterOp* op) noexcept;

}  // namespace flopmeter
