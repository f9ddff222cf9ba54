// SPDX-License-Identifier: Apache-2.0
#include "host.h"
#include "thread_counters.h"

#include <flopmeter/counting/module_scope.h>

#include <map>
#include <mutex>
#include <vector>

namespace flopmeter {
namespace {

/// Never freed: threads may outlive static destruction.
struct Names {
  std::mutex mutex;
  std::map<std::string, ModuleId> ids;
  std::vector<std::string> names{""};
};
Names& names() {
  static Names& instance = *new Names;
  return instance;
}

}  // namespace

ModuleId module_id(const std::string& name) {
  Names& known = names();
  const std::lock_guard lock(known.mutex);
  if (name.empty()) return 0;
  if (const auto found = known.ids.find(name); found != known.ids.end()) return found->second;
  if (known.names.size() == max_modules) return 0;
  const auto id = static_cast<ModuleId>(known.names.size());
  known.names.push_back(name);
  known.ids.emplace(name, id);
  return id;
}

std::string module_name(ModuleId id) {
  Names& known = names();
  const std::lock_guard lock(known.mutex);
  return id < known.names.size() ? known.names[id] : "";
}

ModuleId replicated_module() {
  static const ModuleId id = module_id("(replicated)");
  return id;
}

std::uint32_t enter_module(ModuleId id) {
  return require_adapter().enter_module(id);
}

void leave_module(std::uint32_t token) {
  require_adapter().leave_module(token);
}

}  // namespace flopmeter
