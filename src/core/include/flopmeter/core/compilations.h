// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace flopmeter {

/// How often a compiler began to compile code of the training loop in this process.  Adapters
/// write it; the monitor tags the steps in which it changed.
std::atomic<std::uint64_t>& compilations();

}  // namespace flopmeter
