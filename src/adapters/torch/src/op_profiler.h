// SPDX-License-Identifier: Apache-2.0
//
// All operators between two moments, with their times; see FlopmeterAdapter.
#pragma once

#include <flopmeter/adapter_abi.h>

namespace flopmeter::torch_adapter {

int begin_profile(double tiny_seconds);
void end_profile(const FlopmeterProfileReceiver* receiver);

}  // namespace flopmeter::torch_adapter
