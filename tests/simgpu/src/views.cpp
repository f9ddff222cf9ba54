// SPDX-License-Identifier: Apache-2.0
// Operators that launch nothing: allocation and views. They share torch's own CPU code, which only
// handles metadata.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_cpu_dispatch.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <torch/library.h>

namespace simgpu {
namespace {

constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
c10::Allocator* memory() {
  return c10::GetAllocator(c10::DeviceType::PrivateUse1);
}

at::Tensor empty(c10::IntArrayRef size,
                 std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>,
                 std::optional<at::Device>,
                 std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, memory(), keys, c10::dtype_or_default(dtype), format);
}
at::Tensor empty_strided(c10::IntArrayRef size,
                         c10::IntArrayRef stride,
                         std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>,
                         std::optional<at::Device>,
                         std::optional<bool>) {
  return at::detail::empty_strided_generic(
      size, stride, memory(), keys, c10::dtype_or_default(dtype));
}
at::Tensor as_strided(const at::Tensor& self,
                      c10::SymIntArrayRef size,
                      c10::SymIntArrayRef stride,
                      std::optional<c10::SymInt> offset) {
  return at::cpu::as_strided_symint(self, size, stride, offset);
}
at::Tensor& set_storage_offset(at::Tensor& self,
                               at::Storage source,
                               int64_t offset,
                               c10::IntArrayRef size,
                               c10::IntArrayRef stride) {
  return at::cpu::set_(self, std::move(source), offset, size, stride);
}
at::Tensor& set_empty(at::Tensor& self) {
  const at::Storage storage(at::Storage::use_byte_size_t(), 0, memory(), true);
  return at::cpu::set_(self, storage, 0, {0}, {});
}
const at::Tensor& resize(const at::Tensor& self,
                         c10::IntArrayRef size,
                         std::optional<at::MemoryFormat> format) {
  return at::native::resize_(self, size, format);
}
void record_stream(at::Tensor&, at::Stream) {}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", TORCH_FN(empty));
  library.impl("empty_strided", TORCH_FN(empty_strided));
  library.impl("as_strided", TORCH_FN(as_strided));
  library.impl("view", TORCH_FN(at::native::view));
  library.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  library.impl("unfold", TORCH_FN(at::native::unfold));
  library.impl("resize_", TORCH_FN(resize));
  library.impl("set_", TORCH_FN(set_empty));
  library.impl("set_.source_Storage",
               static_cast<at::Tensor& (*)(at::Tensor&, at::Storage)>(at::native::set_));
  library.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  library.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage_offset));
  library.impl("record_stream", TORCH_FN(record_stream));
}

}  // namespace
}  // namespace simgpu
