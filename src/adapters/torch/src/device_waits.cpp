// SPDX-License-Identifier: Apache-2.0
#include "device_waits.h"

#include "device_clock.h"
#include "interceptor.h"

#if FLOPMETER_TORCH_VERSION >= 204
#include <ATen/ops/_copy_from_and_resize_ops.h>
#include <ATen/ops/_copy_from_ops.h>
#include <ATen/ops/_local_scalar_dense_ops.h>
#include <ATen/ops/copy_ops.h>
#endif

#include <array>
#include <string>
#include <utility>

namespace flopmeter::torch_adapter {
namespace {

/// Calls inside a reported call are part of it.
constinit thread_local bool reporting = false;

}  // namespace

UnreportedCopies::UnreportedCopies() : before_(std::exchange(reporting, true)) {}
UnreportedCopies::~UnreportedCopies() {
  reporting = before_;
}

#if FLOPMETER_TORCH_VERSION >= 204
namespace {

class Reported {
 public:
  Reported(FlopmeterDeviceEvent begin, FlopmeterDeviceEvent end, std::int64_t bytes = 0)
      : end_(end) {
    reporting = true;
    host->device_event(begin, bytes);
  }
  ~Reported() {
    host->device_event(end_, 0);
    reporting = false;
  }
  Reported(const Reported&) = delete;
  Reported& operator=(const Reported&) = delete;
  Reported(Reported&&) = delete;
  Reported& operator=(Reported&&) = delete;

 private:
  FlopmeterDeviceEvent end_;
};

bool is_on_device(const at::Tensor& tensor) {
  return is_training_device(tensor.device().type());
}

/// `.item()`: the host waits for the device.
at::Scalar read_scalar(c10::DispatchKeySet keys, const at::Tensor& self) {
  static const auto op = at::_ops::_local_scalar_dense::redispatch;
  if (reporting || !is_on_device(self)) return op(keys & keys_below, self);
  const Reported reported(FLOPMETER_SYNCHRONIZATION_BEGIN, FLOPMETER_SYNCHRONIZATION_END);
  return op(keys & keys_below, self);
}

bool crosses_devices(c10::Device from, c10::Device to) {
  return (from.is_cpu() && is_training_device(to.type())) ||
         (to.is_cpu() && is_training_device(from.type()));
}

/// Runs `op`, which copies `source` to device `to`.
template <class Op>
decltype(auto) copied(const at::Tensor& source, c10::Device to, bool non_blocking, const Op& op) {
  if (reporting || !crosses_devices(source.device(), to)) return op();
  const Reported reported(FLOPMETER_COPY_BEGIN,
                          non_blocking ? FLOPMETER_COPY_END : FLOPMETER_BLOCKING_COPY_END,
                          static_cast<std::int64_t>(source.nbytes()));
  return op();
}

at::Tensor& copy(c10::DispatchKeySet keys,
                 at::Tensor& self,
                 const at::Tensor& source,
                 bool non_blocking) {
  return copied(source, self.device(), non_blocking, [&]() -> at::Tensor& {
    return at::_ops::copy_::redispatch(keys & keys_below, self, source, non_blocking);
  });
}

// A backend may convert a tensor without calling copy_.
at::Tensor copy_from(c10::DispatchKeySet keys,
                     const at::Tensor& self,
                     const at::Tensor& to,
                     bool non_blocking) {
  return copied(self, to.device(), non_blocking, [&] {
    return at::_ops::_copy_from::redispatch(keys & keys_below, self, to, non_blocking);
  });
}

at::Tensor copy_from_and_resize(c10::DispatchKeySet keys,
                                const at::Tensor& self,
                                const at::Tensor& to) {
  return copied(self, to.device(), false, [&] {
    return at::_ops::_copy_from_and_resize::redispatch(keys & keys_below, self, to);
  });
}

/// Operators whose result has a size, or a value, that the host must know: it waits for the device.
constexpr std::array<std::pair<const char*, const char*>, 8> waiting_ops{{
    {"aten::nonzero", ""},
    {"aten::masked_select", ""},
    {"aten::_unique2", ""},
    {"aten::unique_dim", ""},
    {"aten::unique_consecutive", ""},
    {"aten::repeat_interleave", "Tensor"},
    {"aten::bincount", ""},
    {"aten::equal", ""},
}};

void wait_inside(const c10::OperatorHandle& op,
                 c10::DispatchKeySet keys,
                 torch::jit::Stack* stack) {
  const c10::DispatchKeySet below = keys & keys_below;
  const c10::IValue& first = torch::jit::peek(*stack, 0, op.schema().arguments().size());
  if (reporting || !first.isTensor() || !is_on_device(first.toTensor()))
    return op.redispatchBoxed(below, stack);
  const Reported reported(FLOPMETER_SYNCHRONIZATION_BEGIN, FLOPMETER_SYNCHRONIZATION_END);
  op.redispatchBoxed(below, stack);
}

}  // namespace

void intercept_waits() {
  static auto& library = *new torch::Library(
      torch::Library::IMPL, "aten", interception_key, __FILE__, __LINE__);  // never freed
  const auto is_free = [](const char* name, const char* overload = "") {
    const auto op = c10::Dispatcher::singleton().findSchema({name, overload});
    return op && !op->hasKernelForDispatchKey(interception_key);
  };
  if (is_free("aten::_local_scalar_dense")) library.impl("_local_scalar_dense", read_scalar);
  if (is_free("aten::copy_")) library.impl("copy_", copy);
  if (is_free("aten::_copy_from")) library.impl("_copy_from", copy_from);
  if (is_free("aten::_copy_from_and_resize"))
    library.impl("_copy_from_and_resize", copy_from_and_resize);
  for (const auto& [name, overload] : waiting_ops) {
    if (!is_free(name, overload)) continue;
    const std::string full = std::string(name) + (*overload != 0 ? "." : "") + overload;
    library.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&wait_inside>());
  }
}

#else

void intercept_waits() {}

#endif

}  // namespace flopmeter::torch_adapter
