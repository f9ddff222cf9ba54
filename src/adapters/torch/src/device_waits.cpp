// SPDX-License-Identifier: Apache-2.0
#include "device_waits.h"

#include "device_clock.h"
#include "interceptor.h"

#if FLOPMETER_TORCH_VERSION >= 204
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

at::Tensor& copy(c10::DispatchKeySet keys,
                 at::Tensor& self,
                 const at::Tensor& source,
                 bool non_blocking) {
  static const auto op = at::_ops::copy_::redispatch;
  const bool to_device = source.is_cpu() && is_on_device(self);
  const bool to_host = self.is_cpu() && is_on_device(source);
  if (reporting || !(to_device || to_host))
    return op(keys & keys_below, self, source, non_blocking);
  const Reported reported(FLOPMETER_COPY_BEGIN,
                          non_blocking ? FLOPMETER_COPY_END : FLOPMETER_BLOCKING_COPY_END,
                          static_cast<std::int64_t>(source.nbytes()));
  return op(keys & keys_below, self, source, non_blocking);
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
