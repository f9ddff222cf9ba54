// SPDX-License-Identifier: Apache-2.0
//
// The adapter of this process: the code that was compiled for the framework that trains.
#pragma once

#include <flopmeter/adapter_abi.h>
#include <flopmeter/core/result.h>

#include <string>

namespace flopmeter {

/// Connects an adapter that the program links.  <flopmeter/torch/op_counter.h> calls it.
Result<void> attach_adapter(const FlopmeterAdapter* (*entry)(const FlopmeterHost*));

/// Loads an adapter from its shared library and connects it.  The framework must be loaded.
Result<void> load_adapter(const std::string& path);

/// The connected adapter, or null.
const FlopmeterAdapter* attached_adapter();

}  // namespace flopmeter
