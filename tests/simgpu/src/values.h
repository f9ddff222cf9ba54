// SPDX-License-Identifier: Apache-2.0
// Access to other backends that operator interceptors do not see.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace simgpu {

/// While it lives, operators of this thread go straight to one backend: no autograd, no autocast,
/// no observers, and no interceptor on BackendSelect.
class StraightTo {
 public:
  explicit StraightTo(c10::DispatchKey backend)
      : exclude_(c10::autograd_dispatch_keyset | c10::autocast_dispatch_keyset |
                 c10::DispatchKeySet({c10::DispatchKey::ADInplaceOrView,
                                      c10::DispatchKey::BackendSelect,
                                      c10::DispatchKey::Python,
                                      c10::DispatchKey::PythonTLSSnapshot})),
        include_(c10::DispatchKeySet(backend)) {}

 private:
  c10::impl::ExcludeDispatchKeyGuard exclude_;
  c10::impl::IncludeDispatchKeyGuard include_;
  at::DisableRecordFunctionGuard no_observers_;
};

/// The same memory as a CPU tensor; it keeps the storage alive. A CPU tensor is returned as it is.
at::Tensor cpu_alias(const at::Tensor& tensor);

bool values_are_on();

}  // namespace simgpu
