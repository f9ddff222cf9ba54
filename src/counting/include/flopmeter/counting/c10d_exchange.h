// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/exchange.h>
#include <flopmeter/core/result.h>

#include <memory>
#include <string>

namespace flopmeter {

/// Broadcasts on a process group of torch.distributed, found by its group_name.  It uses host
/// memory, so the backend of the group must be gloo; nothing else may use the group.
Result<std::unique_ptr<Exchange>> make_c10d_exchange(const std::string& group_name);

}  // namespace flopmeter
