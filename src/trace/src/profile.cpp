// SPDX-License-Identifier: Apache-2.0
#include "profile.h"

#include "op_call_args.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace flopmeter {
namespace {

/// Device work shorter than this is over before the next launch arrives.
constexpr TraceNs tiny_kernel = 5000;

Seconds seconds(TraceNs time) {
  return {static_cast<double>(time) * 1e-9};
}

/// Collects the rows of a profile: one per operator, kind, shape, pass, and phase.
class Rows {
 public:
  struct Key {
    TextId name;
    TextId dims;
    OpKind kind;
    Phase phase;
    bool backward, recompute;
    auto operator<=>(const Key&) const = default;
  };

  OpProfileRow& row(const Trace& trace, const Key& key, const HostEvent* op) {
    const auto [at, added] = rows_.try_emplace(key);
    OpProfileRow& row = at->second;
    if (added) {
      row.name = trace.text(key.name);
      row.kind = key.kind;
      row.phase = key.phase;
      row.backward = key.backward;
      row.recompute = key.recompute;
      if (op != nullptr)
        row.shape = OpCallArgs{trace.text(op->dims), trace.text(op->types), {}}.shapes();
    }
    return row;
  }

  std::vector<OpProfileRow> take() {
    std::vector<OpProfileRow> all;
    for (auto& [key, row] : rows_) all.push_back(std::move(row));
    std::stable_sort(all.begin(), all.end(), [](const OpProfileRow& a, const OpProfileRow& b) {
      return a.self > b.self;
    });
    return all;
  }

 private:
  std::map<Key, OpProfileRow> rows_;
};

void add_cost(OpProfileRow& row, const CountedOp& op) {
  row.flops += static_cast<std::uint64_t>(op.executed.value);
  row.bytes += static_cast<std::uint64_t>(op.bytes.value);
}

}  // namespace

OpProfile profile_device(const Trace& trace,
                         const OpFlops& flops,
                         std::span<const Work> work,
                         std::span<const std::uint32_t> device_events) {
  OpProfile profile;
  profile.on_device = true;
  Rows rows;
  std::set<std::uint32_t> seen;  // counted operators with several kernels are one call
  for (const std::uint32_t index : device_events) {
    const DeviceEvent& event = trace.device_events[index];
    if (event.kind == DeviceClass::communication) continue;
    const Work& piece = work[index];
    const CountedOp* const op = piece.counted != no_event ? &flops.ops[piece.counted] : nullptr;
    const HostEvent* const host = op != nullptr ? &trace.host_events[op->event] : nullptr;
    const bool tiny = piece.kind == OpKind::memory && event.duration < tiny_kernel;
    OpProfileRow& row = rows.row(trace,
                                 {.name = piece.name,
                                  .dims = host != nullptr ? host->dims : no_text,
                                  .kind = tiny ? OpKind::tiny : piece.kind,
                                  .phase = piece.phase,
                                  .backward = piece.backward,
                                  .recompute = op != nullptr && op->recompute},
                                 host);
    row.self = row.self + seconds(event.duration);
    row.across_devices =
        event.kind == DeviceClass::memcpy &&
        (row.name.find("HtoD") != std::string::npos || row.name.find("DtoH") != std::string::npos);
    profile.busy = profile.busy + seconds(event.duration);
    const bool first = op == nullptr || seen.insert(piece.counted).second;
    if (!first) continue;
    ++row.calls;
    ++profile.calls;
    if (op != nullptr) add_cost(row, *op);
  }
  profile.rows = rows.take();
  return profile;
}

OpProfile profile_host(const Trace& trace,
                       const Links& links,
                       const OpFlops& flops,
                       std::span<const std::uint32_t> host_events) {
  // An operator's own time is its time without that of the operators it calls.
  std::vector<TraceNs> own(trace.host_events.size(), 0);
  for (const std::uint32_t index : host_events) {
    const HostEvent& event = trace.host_events[index];
    if (event.kind != HostKind::op) continue;
    own[index] += event.duration;
    if (const std::uint32_t outer = innermost_op(trace, links, links.parent[index]);
        outer != no_event)
      own[outer] -= event.duration;
  }
  OpProfile profile;
  Rows rows;
  for (const std::uint32_t index : host_events) {
    if (trace.host_events[index].kind != HostKind::op) continue;
    const TraceNs time = std::max<TraceNs>(own[index], 0);
    const std::uint32_t counted = flops.counted_as[index];
    const CountedOp* const op = counted != no_event ? &flops.ops[counted] : nullptr;
    const std::uint32_t named = op != nullptr ? op->event : index;
    const HostEvent& host = trace.host_events[named];
    const OpContext context = flops.context[named];
    const bool aten = trace.text(host.name).starts_with("aten::");
    OpProfileRow& row = rows.row(trace,
                                 {.name = host.name,
                                  .dims = op != nullptr ? host.dims : no_text,
                                  .kind = op != nullptr ? OpKind::compute
                                          : aten        ? OpKind::memory
                                                        : OpKind::unknown,
                                  .phase = context.optimizer  ? Phase::optimizer
                                           : context.backward ? Phase::backward
                                                              : Phase::forward,
                                  .backward = context.backward,
                                  .recompute = op != nullptr && op->recompute},
                                 op != nullptr ? &host : nullptr);
    row.self = row.self + seconds(time);
    profile.busy = profile.busy + seconds(time);
    if (named != index) continue;
    ++row.calls;
    ++profile.calls;
    if (op != nullptr) add_cost(row, *op);
  }
  profile.rows = rows.take();
  return profile;
}

}  // namespace flopmeter
