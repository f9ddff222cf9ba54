// SPDX-License-Identifier: Apache-2.0
//
// Remembers, for each thread, which module was open when which autograd nodes were made: nodes
// carry the number and the thread of their making, so that backward work finds its module without a
// hook on any tensor.
#pragma once

#include <cstdint>

namespace flopmeter::torch_adapter {

/// The module in whose scope the node was made; 0 when unknown.
std::uint32_t module_of_node(std::uint64_t thread, std::uint64_t sequence);

}  // namespace flopmeter::torch_adapter
