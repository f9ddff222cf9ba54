// SPDX-License-Identifier: Apache-2.0
#include "module_log.h"

#include "context.h"

#include <flopmeter/torch/module_scope.h>

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

namespace flopmeter {
namespace torch_adapter {
namespace {

/// From node number `sequence` on, `module` was open.
struct Change {
  std::uint64_t sequence = 0;
  std::uint32_t module = 0;
};
constexpr std::size_t kept_changes = 1 << 20;

struct Log {
  std::mutex mutex;
  std::map<std::string, ModuleId> ids;
  std::vector<std::string> names{""};
  std::map<std::uint64_t, std::vector<Change>> changes;
};
Log& log() {
  static Log& instance = *new Log;
  return instance;
}

thread_local std::vector<ModuleId> open_modules;

void note_change() {
  context.module = open_modules.empty() ? 0 : open_modules.back();
  const std::uint64_t sequence = at::sequence_number::peek();
  const std::lock_guard lock(log().mutex);
  auto& changes = log().changes[at::RecordFunction::currentThreadId()];
  if (!changes.empty() && changes.back().sequence == sequence) {
    changes.back().module = context.module;
    return;
  }
  if (changes.size() == kept_changes)
    changes.erase(changes.begin(), changes.begin() + kept_changes / 2);
  changes.push_back({.sequence = sequence, .module = context.module});
}

}  // namespace

std::uint32_t module_of_node(std::uint64_t thread, std::uint64_t sequence) {
  const std::lock_guard lock(log().mutex);
  const auto thread_changes = log().changes.find(thread);
  if (thread_changes == log().changes.end()) return 0;
  const auto& changes = thread_changes->second;
  const auto after = std::upper_bound(
      changes.begin(), changes.end(), sequence, [](std::uint64_t wanted, const Change& change) {
        return wanted < change.sequence;
      });
  return after == changes.begin() ? 0 : std::prev(after)->module;
}

}  // namespace torch_adapter

using torch_adapter::log;

ModuleId module_id(const std::string& name) {
  const std::lock_guard lock(log().mutex);
  if (name.empty()) return 0;
  const auto known = log().ids.find(name);
  if (known != log().ids.end()) return known->second;
  if (log().names.size() == torch_adapter::max_modules) return 0;
  const auto id = static_cast<ModuleId>(log().names.size());
  log().names.push_back(name);
  log().ids.emplace(name, id);
  return id;
}

ModuleId replicated_module() {
  static const ModuleId id = module_id("(replicated)");
  return id;
}

std::string module_name(ModuleId id) {
  const std::lock_guard lock(log().mutex);
  return id < log().names.size() ? log().names[id] : "";
}

std::uint32_t enter_module(ModuleId id) {
  torch_adapter::open_modules.push_back(id);
  torch_adapter::note_change();
  return static_cast<std::uint32_t>(torch_adapter::open_modules.size() - 1);
}

void leave_module(std::uint32_t token) {
  if (token < torch_adapter::open_modules.size()) torch_adapter::open_modules.resize(token);
  torch_adapter::note_change();
}

}  // namespace flopmeter
