// SPDX-License-Identifier: Apache-2.0
//
// Work that keeps a device busy without a kernel for that: matmuls whose time is known.
#pragma once

namespace flopmeter::torch_adapter {

/// Training thread, when the clock is open: enqueues a matmul between two events.
void prepare_device_delay();
/// Training thread: keeps the current stream busy for about `seconds`.  0 if the time of a matmul
/// is not known.
int delay_device(double seconds);

}  // namespace flopmeter::torch_adapter
