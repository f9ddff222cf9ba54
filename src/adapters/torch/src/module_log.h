// SPDX-License-Identifier: Apache-2.0
//
// Records for each thread which module was open when which autograd nodes were created.  A node
// carries its sequence number and thread, so that backward work finds its module without a hook on
// any tensor.
#pragma once

#include <cstdint>

namespace flopmeter::torch_adapter {

/// The module in whose scope the node was created; 0 if unknown.
std::uint32_t module_of_node(std::uint64_t thread, std::uint64_t sequence);

std::uint32_t enter_module(std::uint32_t module);
void leave_module(std::uint32_t token);

}  // namespace flopmeter::torch_adapter
