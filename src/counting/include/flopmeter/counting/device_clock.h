// SPDX-License-Identifier: Apache-2.0
//
// The clock of the device that the adapter's framework trains on.
#pragma once

#include <flopmeter/core/device_clock.h>

#include <cstdint>

namespace flopmeter {

/// The clock of this process; without an adapter it has no device.  Lives until the process ends.
DeviceClock* adapter_device_clock();

/// The model trains on the device, not the host, of the tensor with this c10::TensorImpl address.
void use_device_of(std::uintptr_t tensor);

/// Adds to the number of graph captures under way; 0 states that they are reported.
void count_captures(int change);

/// `delay` enqueues a kernel on the current stream that does nothing for about `seconds`; false if
/// it cannot.  It does not throw.
void set_device_delay(bool (*delay)(double seconds));

/// An event of the adapter, from any thread.
void report_device_event(DeviceEvent event, std::int64_t bytes) noexcept;

}  // namespace flopmeter
