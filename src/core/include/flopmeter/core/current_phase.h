// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/phase.h>

#include <atomic>

namespace flopmeter {

/// The phase of the training thread.  The monitor writes it; adapters read it to attribute what
/// they count.
std::atomic<Phase>& current_phase();

}  // namespace flopmeter
