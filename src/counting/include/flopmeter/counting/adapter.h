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

/// The counted operator with this name, for FlopmeterAdapter::count_call: a Python function or a
/// node of a compiled graph.  Created on first use, and lives until the process ends; null if there
/// are too many.
const FlopmeterOp* counted_op(const std::string& name);
/// The catalog's rule by which the operator is counted; null if there is none or a user replaced
/// it.
const struct OpRule* catalog_rule(const FlopmeterOp& op);
/// Whether the operator has a FLOP cost, by the catalog or by a user.
bool has_rule(const FlopmeterOp& op);

}  // namespace flopmeter
