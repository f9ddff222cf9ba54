// SPDX-License-Identifier: Apache-2.0
//
// Counting for C++ programs that use LibTorch: include this header and link flopmeter::torch.
//
//   flopmeter::OpCounter counter;
//   model->forward(x).sum().backward();
//   auto counts = counter.counts();
#pragma once

#include <flopmeter/counting/adapter.h>
#include <flopmeter/counting/backward_hook.h>
#include <flopmeter/counting/c10d_exchange.h>
#include <flopmeter/counting/module_scope.h>
#include <flopmeter/counting/op_counter.h>
#include <flopmeter/counting/op_profiler.h>

namespace flopmeter {

/// Connects the linked adapter before main().  The reference also keeps the linker from dropping
/// the adapter's library.
inline const bool torch_adapter_attached = attach_adapter(&flopmeter_torch_adapter).has_value();

}  // namespace flopmeter
