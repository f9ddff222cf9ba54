// SPDX-License-Identifier: Apache-2.0
// Copies between host and device, and within the device, with CUDA's rules on when the host waits:
// a blocking copy waits; a non-blocking copy of more than 64 KiB from or to pageable memory waits
// too.
#include "costs.h"
#include "values.h"

#include <ATen/Context.h>
#include <ATen/ops/_copy_from.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_to_copy_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

namespace simgpu {
namespace {

constexpr double staged_bytes =
    64 * 1024;  // pageable copies up to here go through a staging buffer
constexpr double small_on_device =
    4 * 1024;  // with values off, copies up to these sizes are still done:
constexpr double small_from_host = 1024 * 1024;  // shapes, masks, and flags that programs read back

Kernel host_copy(Kind kind, double bytes, bool pinned) {
  const Settings& s = settings();
  const double gbs = pinned ? s.pinned_gbs : s.pageable_gbs;
  return {.name = kind == Kind::host_to_device ? "Memcpy HtoD" : "Memcpy DtoH",
          .kind = kind,
          .bytes = bytes,
          .duration = static_cast<Time>(bytes / gbs),
          .fixed = microseconds(s.copy_us)};
}

std::function<void()> copy_task(const at::Tensor& from, const at::Tensor& to, double limit) {
  if (!values_are_on() && bytes_of(to) > limit) return {};
  return [from = cpu_alias(from), to = cpu_alias(to)] {
    const StraightTo cpu(c10::DispatchKey::CPU);
    to.copy_(from);
  };
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (to.numel() == 0) return to;
  if (!from.is_cpu() && !to.is_cpu()) {
    device().launch(current_stream(),
                    roofline("copy_", 0, false, bytes_of(from) + bytes_of(to)),
                    copy_task(from, to, small_on_device));
    return to;
  }
  const Time begin = now();
  const bool to_device = from.is_cpu();
  const at::Tensor& host = to_device ? from : to;
  const bool pinned = host.is_pinned();
  const double bytes = bytes_of(to_device ? to : from);
  const Time end = device().launch(
      current_stream(),
      host_copy(to_device ? Kind::host_to_device : Kind::device_to_host, bytes, pinned),
      copy_task(from, to, small_from_host));
  const bool staged = to_device && bytes <= staged_bytes;
  if (!non_blocking || (!pinned && !staged))
    device().wait_for(end, current_stream(), "copy", begin);
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Tensor to_copy(const at::Tensor& self,
                   std::optional<at::ScalarType> dtype,
                   std::optional<at::Layout> layout,
                   std::optional<at::Device> to,
                   std::optional<bool> pin_memory,
                   bool non_blocking,
                   std::optional<at::MemoryFormat> format) {
  const bool converts = dtype && *dtype != self.scalar_type();
  if (settings().own_to_copy == 0 || !to || !to->is_cpu() || converts)
    return at::native::_to_copy(self, dtype, layout, to, pin_memory, non_blocking, format);
  at::Tensor result =
      at::empty(self.sizes(), self.options().device(*to).pinned_memory(pin_memory.value_or(false)));
  at::_copy_from(self.contiguous(), result, non_blocking);
  return result;
}

at::Scalar item(const at::Tensor& self) {
  const Time begin = now();
  const Time end =
      device().launch(current_stream(), host_copy(Kind::device_to_host, bytes_of(self), true));
  device().wait_for(end, current_stream(), "item", begin);
  const StraightTo cpu(c10::DispatchKey::CPU);
  return at::_local_scalar_dense(cpu_alias(self));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_copy_from", TORCH_FN(copy_from));
  library.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  library.impl("_to_copy", TORCH_FN(to_copy));
  library.impl("_local_scalar_dense", TORCH_FN(item));
}

}  // namespace
}  // namespace simgpu
