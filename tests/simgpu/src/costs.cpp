// SPDX-License-Identifier: Apache-2.0
#include "costs.h"

#include <algorithm>
#include <array>

namespace simgpu {
namespace {

double numel(const at::Tensor& tensor) {
  return static_cast<double>(tensor.numel());
}

/// 2mnk of the matmul a·b, which may have batch dimensions.
double matmul(const at::Tensor& a, const at::Tensor& b) {
  return 2 * numel(a) * static_cast<double>(b.size(-1));
}

double flops_of(std::string_view name, c10::ArrayRef<c10::IValue> arguments) {
  if (name == "mm" || name == "bmm")
    return matmul(arguments[0].toTensor(), arguments[1].toTensor());
  if (name == "addmm" || name == "baddbmm" || name == "addmm_" || name == "baddbmm_") {
    return matmul(arguments[1].toTensor(), arguments[2].toTensor());
  }
  return 0;
}

/// Operators that read as much as they write, independent of the size of the table.
bool reads_rows(std::string_view name) {
  static constexpr std::array<std::string_view, 5> names{
      "embedding", "index_select", "gather", "index", "take"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void append_tensors(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) tensors.push_back(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorList()) tensors.push_back(tensor);
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList()) {
      if (tensor.has_value() && tensor->defined()) tensors.push_back(*tensor);
    }
  }
}

double bytes_of(const at::Tensor& tensor) {
  double elements = 1;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.stride(d) != 0 || tensor.size(d) == 0)
      elements *= static_cast<double>(tensor.size(d));
  }
  return elements * static_cast<double>(tensor.element_size());
}

bool is_16_bit(const at::Tensor& tensor) {
  return tensor.element_size() <= 2;
}

Kernel kernel_of(std::string_view name,
                 c10::ArrayRef<c10::IValue> arguments,
                 c10::ArrayRef<at::Tensor> results) {
  double written = 0, read = 0;
  for (const at::Tensor& tensor : results) written += bytes_of(tensor);
  std::vector<at::Tensor> inputs;
  for (const c10::IValue& argument : arguments) append_tensors(argument, inputs);
  for (const at::Tensor& tensor : inputs) read += bytes_of(tensor);
  if (reads_rows(name)) read = written;
  const double flops = flops_of(name, arguments);
  const bool half = !inputs.empty() && is_16_bit(inputs.back());
  return roofline(std::string(name), flops, half, read + written);
}

}  // namespace simgpu
