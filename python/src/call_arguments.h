// SPDX-License-Identifier: Apache-2.0
//
// Python objects as the arguments that rules read.
#pragma once

#include <flopmeter/adapter_abi.h>

#include <pybind11/pybind11.h>

#include <array>
#include <cstdint>
#include <forward_list>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Reads tensors: those of torch by their address, and TransformerEngine's by their attributes.
class CallArguments {
 public:
  static constexpr std::size_t most = 40;

  /// `place` is the position at which the rule reads the object; several objects may have one, and
  /// those that are absent leave it to the others.
  void set(std::size_t place, PyObject* object) noexcept;
  [[nodiscard]] const FlopmeterArg* data() const { return args_.data(); }
  /// As FlopmeterCall::tensors.
  [[nodiscard]] const void* const* tensors() const { return tensors_.data(); }
  [[nodiscard]] std::size_t size() const { return count_; }
  /// The type of the first tensor's device; that of the host without a tensor.
  [[nodiscard]] std::int32_t device() const { return device_ < 0 ? 0 : device_; }

  /// Whether an argument has the microscaled format of TransformerEngine.
  [[nodiscard]] bool has_mxfp8() const { return has_mxfp8_; }

  /// Leaves no Python error.
  FlopmeterArg read(PyObject* object) noexcept;

 private:
  FlopmeterArg read_tensor(PyObject* tensor) noexcept;
  /// The compute dtype of a quantized tensor of TransformerEngine, or -1.
  int quantized_dtype(PyObject* object) noexcept;
  FlopmeterArg read_columnwise(PyObject* object);
  FlopmeterArg read_grouped(PyObject* object);
  FlopmeterArg read_sized(PyObject* object);
  FlopmeterArg read_sequence(PyObject* sequence);
  FlopmeterArg read_extents(PyObject* sizes);

  std::array<FlopmeterArg, most> args_;
  std::array<const void*, most> tensors_;
  std::size_t count_ = 0;
  std::int32_t device_ = -1;
  bool has_mxfp8_ = false;
  std::forward_list<std::vector<std::int64_t>> values_;
  std::forward_list<std::vector<FlopmeterArg>> items_;
};

}  // namespace flopmeter
