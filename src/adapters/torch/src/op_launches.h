// SPDX-License-Identifier: Apache-2.0
//
// Which operators launch kernels on a device, as far as their schemas show.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace flopmeter::torch_adapter {

/// A collective of c10d, which may run on the current stream.
inline bool is_collective(std::string_view name) {
  return name.starts_with("c10d::") || name.starts_with("_c10d_functional::");
}

/// Kernels of an operator, as far as its schema shows.
struct Launches {
  bool none = false;       ///< a view, or memory without values
  bool of_others = false;  ///< made of operators that launch its kernels
};

inline Launches launches_of(const at::RecordFunction& function) {
  Launches found;
  const std::string_view name = function.name();
  for (const std::string_view prefix : {"aten::empty", "aten::new_empty", "aten::resize_"})
    found.none = found.none || name.starts_with(prefix);
  for (const std::string_view each : {"aten::set_", "aten::detach_", "aten::record_stream"})
    found.none = found.none || name == each;
  const auto id = function.operator_name();
  if (!id) return found;
  const auto op = c10::Dispatcher::singleton().findSchema(*id);
  if (!op) return found;
  const auto& returns = op->schema().returns();
  const bool is_view =
      !returns.empty() && std::all_of(returns.begin(), returns.end(), [](const auto& each) {
        return each.alias_info() != nullptr && !each.alias_info()->isWrite();
      });
  found.none = found.none || is_view;
  found.of_others = op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  return found;
}

/// The same, remembered by name.
inline Launches known_launches(const at::RecordFunction& function) {
  thread_local std::map<std::string, Launches, std::less<>> known;
  const std::string_view name = function.name();
  const auto at = known.find(name);
  if (at != known.end()) return at->second;
  return known.emplace(name, launches_of(function)).first->second;
}

}  // namespace flopmeter::torch_adapter
