// SPDX-License-Identifier: Apache-2.0
//
// The clock of the device that the adapter's framework trains on.
#pragma once

#include <flopmeter/core/device_clock.h>

namespace flopmeter {

/// The clock of this process, or null without an adapter.  Lives until the process ends.
DeviceClock* adapter_device_clock();

/// An event of the adapter, from any thread.
void report_device_event(DeviceEvent event) noexcept;

}  // namespace flopmeter
