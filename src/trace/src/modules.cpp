// SPDX-License-Identifier: Apache-2.0
#include "modules.h"

#include "event_fields.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

namespace flopmeter {
namespace {

/// Annotations of torch itself, which name no part of a model.
bool is_of_torch(std::string_view name) {
  static constexpr auto prefixes = std::to_array<std::string_view>({"ProfilerStep#",
                                                                    "Optimizer.",
                                                                    "enumerate(DataLoader)#",
                                                                    "## Call CompiledFxGraph",
                                                                    "Torch-Compiled Region",
                                                                    "TorchDynamo Cache Lookup",
                                                                    "nccl:",
                                                                    "gloo:",
                                                                    "record_param_comms"});
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view prefix) {
    return name.starts_with(prefix);
  });
}

/// "Linear" of "nn.Module: Linear_75": the number is the instance.
std::string_view class_of(std::string_view name) {
  name.remove_prefix(module_prefix.size());
  const std::size_t end = name.find_last_not_of("0123456789");
  return end != std::string_view::npos && end > 0 && name[end] == '_' ? name.substr(0, end) : name;
}

using PathId = std::uint32_t;
constexpr PathId no_path = 0;

/// The module around each host event.
class Modules {
 public:
  Modules(const Trace& trace, const Links& links, const OpFlops& flops)
      : paths_{""}, of_event_(trace.host_events.size(), no_path) {
    const std::vector<std::string_view> parts = parts_of(trace);
    std::unordered_map<std::int64_t, PathId> by_sequence;  // of forward operators
    for (std::size_t i = 0; i < of_event_.size(); ++i) {
      const HostEvent& event = trace.host_events[i];
      const std::uint32_t parent = links.parent[i];
      if (parent != no_event) of_event_[i] = of_event_[parent];
      if (event.kind == HostKind::annotation && !parts[event.name].empty())
        of_event_[i] = extended(of_event_[i], parts[event.name]);
      // Operators without gradients have the number of the next one with them: the last one counts.
      if (event.sequence != no_id && !flops.context[i].backward && of_event_[i] != no_path)
        by_sequence.insert_or_assign(event.sequence, of_event_[i]);
    }
    for (std::size_t i = 0; i < of_event_.size(); ++i) {
      const std::uint32_t parent = links.parent[i];
      if (of_event_[i] != no_path) continue;
      if (parent != no_event) of_event_[i] = of_event_[parent];
      const std::int64_t sequence = trace.host_events[i].sequence;
      if (of_event_[i] != no_path || sequence == no_id) continue;
      if (const auto forward = by_sequence.find(sequence); forward != by_sequence.end())
        of_event_[i] = forward->second;
    }
  }

  [[nodiscard]] bool empty() const { return paths_.size() == 1; }
  [[nodiscard]] PathId of(std::size_t event) const { return of_event_[event]; }
  [[nodiscard]] const std::string& path(PathId id) const { return paths_[id]; }

 private:
  /// By name: the part of a path that an annotation adds; empty if none.
  static std::vector<std::string_view> parts_of(const Trace& trace) {
    std::vector<std::string_view> parts(trace.texts.size());
    bool stacks = false;
    for (TextId id = 0; id < trace.texts.size(); ++id) {
      if (!trace.text(id).starts_with(module_prefix)) continue;
      parts[id] = class_of(trace.text(id));
      stacks = true;
    }
    for (TextId id = 0; id < trace.texts.size() && !stacks; ++id) {
      if (!is_of_torch(trace.text(id))) parts[id] = trace.text(id);
    }
    return parts;
  }

  PathId extended(PathId outer, std::string_view part) {
    const auto [known, added] =
        inner_.try_emplace({outer, part}, static_cast<PathId>(paths_.size()));
    if (added) paths_.push_back(paths_[outer] + (outer == no_path ? "" : "/") + std::string{part});
    return known->second;
  }

  std::vector<std::string> paths_;
  std::map<std::pair<PathId, std::string_view>, PathId> inner_;
  std::vector<PathId> of_event_;
};

}  // namespace

std::vector<ModuleTime> times_by_module(const Trace& trace,
                                        const Links& links,
                                        const OpFlops& flops,
                                        std::span<const std::uint32_t> device_events) {
  const Modules modules{trace, links, flops};
  if (modules.empty()) return {};
  std::map<PathId, ModuleTime> times;
  const auto add = [&](std::uint32_t event, TraceNs time) {
    const PathId path = modules.of(event);
    if (path == no_path) return;
    (flops.context[event].backward ? times[path].backward : times[path].forward) += time;
  };
  for (const std::uint32_t i : device_events) {
    const std::uint32_t event = links.op[i] != no_event ? links.op[i] : links.launch[i];
    if (event != no_event) add(event, trace.device_events[i].duration);
  }
  for (std::uint32_t i = 0; device_events.empty() && i < trace.host_events.size(); ++i) {
    const HostEvent& event = trace.host_events[i];
    if (event.kind != HostKind::op) continue;
    add(i, event.duration);
    // An operator's own time is without that of the operators it calls.
    if (const std::uint32_t outer = innermost_op(trace, links, links.parent[i]); outer != no_event)
      add(outer, -event.duration);
  }
  for (const CountedOp& op : flops.ops) {
    if (const auto time = times.find(modules.of(op.event)); time != times.end())
      time->second.flops += op.executed;
  }
  std::vector<ModuleTime> all;
  for (auto& [path, time] : times) {
    time.module = modules.path(path);
    all.push_back(std::move(time));
  }
  std::stable_sort(all.begin(), all.end(), [](const ModuleTime& a, const ModuleTime& b) {
    return a.forward + a.backward > b.forward + b.backward;
  });
  return all;
}

}  // namespace flopmeter
