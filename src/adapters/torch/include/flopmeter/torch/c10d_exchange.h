// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/exchange.h>
#include <flopmeter/core/result.h>

#include <memory>
#include <string>

namespace flopmeter {

/// Broadcasts on a process group of torch.distributed, known by its group_name; on host memory, so
/// the group's backend is gloo.  The group must be nobody else's.  An Error where this torch has
/// none of that name.
Result<std::unique_ptr<Exchange>> make_c10d_exchange(const std::string& group_name);

}  // namespace flopmeter
