// SPDX-License-Identifier: Apache-2.0
#include "module_log.h"

#include "context.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

namespace flopmeter::torch_adapter {
namespace {

/// From node number `sequence` on, `module` was open.
struct ModuleChange {
  std::uint64_t sequence = 0;
  std::uint32_t module = 0;
};
constexpr std::size_t kept_changes = 1 << 20;

/// Never freed: threads may outlive static destruction.
struct ModuleLog {
  std::mutex mutex;
  std::map<std::uint64_t, std::vector<ModuleChange>> changes;  ///< by thread
};
ModuleLog& module_log() {
  static ModuleLog& instance = *new ModuleLog;
  return instance;
}

thread_local std::vector<std::uint32_t> open_modules;

void record_change() {
  thread_context.module = open_modules.empty() ? 0 : open_modules.back();
  const std::uint64_t sequence = at::sequence_number::peek();
  const std::lock_guard lock(module_log().mutex);
  auto& changes = module_log().changes[at::RecordFunction::currentThreadId()];
  if (!changes.empty() && changes.back().sequence == sequence) {
    changes.back().module = thread_context.module;
    return;
  }
  if (changes.size() == kept_changes)
    changes.erase(changes.begin(), changes.begin() + kept_changes / 2);
  changes.push_back({.sequence = sequence, .module = thread_context.module});
}

}  // namespace

std::uint32_t module_of_node(std::uint64_t thread, std::uint64_t sequence) {
  const std::lock_guard lock(module_log().mutex);
  const auto found = module_log().changes.find(thread);
  if (found == module_log().changes.end()) return 0;
  const auto& changes = found->second;
  const auto after = std::upper_bound(
      changes.begin(),
      changes.end(),
      sequence,
      [](std::uint64_t wanted, const ModuleChange& change) { return wanted < change.sequence; });
  return after == changes.begin() ? 0 : std::prev(after)->module;
}

std::uint32_t enter_module(std::uint32_t module) {
  open_modules.push_back(module);
  record_change();
  return static_cast<std::uint32_t>(open_modules.size() - 1);
}

void leave_module(std::uint32_t token) {
  if (token < open_modules.size()) open_modules.resize(token);
  record_change();
}

}  // namespace flopmeter::torch_adapter
