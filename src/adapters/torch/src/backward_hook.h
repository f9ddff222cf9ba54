// SPDX-License-Identifier: Apache-2.0
//
// Reports when backward begins and ends; see FlopmeterAdapter.
#pragma once

#include <cstdint>

namespace flopmeter::torch_adapter {

void* make_backward_hook(void* context, void (*begins)(void*), void (*ends)(void*));
void free_backward_hook(void* hook);
int hook_tensor(void* hook, std::uintptr_t tensor);
int take_begun(void* hook);

}  // namespace flopmeter::torch_adapter
