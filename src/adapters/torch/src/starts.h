// SPDX-License-Identifier: Apache-2.0
//
// Copies the starts of packed sequences to the host without waiting for the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace flopmeter::torch_adapter {

/// The tensor if its values can be starts of sequences, else null.
const void* as_starts(const c10::TensorImpl& tensor);

const void* find_starts(std::uintptr_t tensor);
void* copy_starts(const void* tensor, std::uint64_t group, int may_be_late);
int read_starts(void* copy, const std::int64_t** values, std::size_t* count);
void release_starts(void* copy);

}  // namespace flopmeter::torch_adapter
