// SPDX-License-Identifier: Apache-2.0
//
// The library's side of the C interface.
#pragma once

#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/counting/adapter.h>

#include <cstddef>
#include <span>

namespace flopmeter {

/// The connected adapter; throws std::runtime_error if there is none.
const FlopmeterAdapter& require_adapter();

// host.cpp asserts that the two types have one layout.
inline std::span<const Arg> to_args(const FlopmeterArg* args, std::size_t count) {
  return {reinterpret_cast<const Arg*>(args), count};
}
inline const Arg& to_arg(const FlopmeterArg& arg) {
  return reinterpret_cast<const Arg&>(arg);
}

/// Users of counting and of attribution to modules.  Counts, so that users may overlap.
void add_users(int counting, int modules);
/// Whether anybody counts modules.
bool counts_modules();

}  // namespace flopmeter
