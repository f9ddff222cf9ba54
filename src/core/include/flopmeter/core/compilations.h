// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace flopmeter {

/// How often code of the training loop began to be compiled, or captured into a graph, in this
/// process.  Adapters write it; the monitor tags the steps in which it changed.
std::atomic<std::uint64_t>& compilations();

}  // namespace flopmeter
