// SPDX-License-Identifier: Apache-2.0
//
// All operators between two moments, with their times; see FlopmeterAdapter.
#pragma once

#include <flopmeter/adapter_abi.h>

namespace flopmeter::torch_adapter {

int begin_profile(double tiny_seconds, int device_times);
int end_profile(const FlopmeterProfileReceiver* receiver);
void exclude_from_profile();

/// Around a wait of the current stream for collectives.
void begin_profiled_wait();
void end_profiled_wait();

}  // namespace flopmeter::torch_adapter
