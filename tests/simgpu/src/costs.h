// SPDX-License-Identifier: Apache-2.0
// Cost of an operator: FLOPs of matmuls, bytes of all tensors.
#pragma once

#include "timeline.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <string_view>
#include <vector>

namespace simgpu {

/// All tensors in `value`: a tensor, an optional one, or a list. Undefined tensors are skipped.
void append_tensors(const c10::IValue& value, std::vector<at::Tensor>& tensors);

/// Bytes of the distinct elements of a tensor; an expanded dimension counts once.
double bytes_of(const at::Tensor& tensor);

bool is_16_bit(const at::Tensor& tensor);

/// The kernel of operator `name` ("mm", "add", …) with these arguments and results.
Kernel kernel_of(std::string_view name,
                 c10::ArrayRef<c10::IValue> arguments,
                 c10::ArrayRef<at::Tensor> results);

}  // namespace simgpu
