// SPDX-License-Identifier: Apache-2.0
//
// Broadcasts over a process group of torch.distributed; see FlopmeterAdapter.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flopmeter::torch_adapter {

void* find_group(const char* name);
int group_rank(void* group);
int group_size(void* group);
int broadcast(void* group,
              void* bytes,
              std::size_t size,
              std::int64_t deadline_milliseconds,
              void* context,
              int (*stop)(void*));

}  // namespace flopmeter::torch_adapter
