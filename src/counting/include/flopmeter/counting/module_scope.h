// SPDX-License-Identifier: Apache-2.0
//
// The module that work belongs to.  Forward work belongs to the innermost open scope of its thread;
// backward work to the scope in which its autograd node was created.
#pragma once

#include <cstdint>
#include <string>

namespace flopmeter {

using ModuleId = std::uint32_t;

/// The id of a module, the same for the same name; 0 if there are too many modules.
ModuleId module_id(const std::string& name);
std::string module_name(ModuleId id);

/// The module for work that is identical on every rank of a tensor-parallel group.  A
/// TorchFlopCounter can sum it separately.
ModuleId replicated_module();

/// Opens a scope in this thread; returns a token for leave_module.
std::uint32_t enter_module(ModuleId id);
/// Closes the scope, and scopes inside it that an exception left open.
void leave_module(std::uint32_t token);

class ModuleScope {
 public:
  explicit ModuleScope(ModuleId id) : token_(enter_module(id)) {}
  ~ModuleScope() { leave_module(token_); }
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;
  ModuleScope(ModuleScope&&) = delete;
  ModuleScope& operator=(ModuleScope&&) = delete;

 private:
  std::uint32_t token_;
};

}  // namespace flopmeter
