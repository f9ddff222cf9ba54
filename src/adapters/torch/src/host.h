// SPDX-License-Identifier: Apache-2.0
//
// The library that this adapter counts for.
#pragma once

#include <flopmeter/adapter_abi.h>

namespace flopmeter::torch_adapter {

/// Set once, before any other function of the adapter is called.
inline const FlopmeterHost* host = nullptr;

}  // namespace flopmeter::torch_adapter
