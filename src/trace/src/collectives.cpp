// SPDX-License-Identifier: Apache-2.0
#include "collectives.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace flopmeter {
namespace {

/// Bytes of one element of a c10d dtype; empty if it is not known.
std::optional<std::int64_t> element_bytes(std::string_view dtype) {
  struct Row {
    std::string_view name;
    std::int64_t bytes;
  };
  static constexpr auto rows = std::to_array<Row>({{"Float", 4},
                                                   {"Double", 8},
                                                   {"Half", 2},
                                                   {"BFloat16", 2},
                                                   {"Float8_e4m3fn", 1},
                                                   {"Float8_e5m2", 1},
                                                   {"Float8_e4m3fnuz", 1},
                                                   {"Float8_e5m2fnuz", 1},
                                                   {"Byte", 1},
                                                   {"Char", 1},
                                                   {"Bool", 1},
                                                   {"Short", 2},
                                                   {"Int", 4},
                                                   {"Long", 8},
                                                   {"ComplexFloat", 8},
                                                   {"ComplexDouble", 16}});
  for (const Row& row : rows) {
    if (row.name == dtype) return row.bytes;
  }
  return std::nullopt;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Bytes on each link per byte of the call's larger side (nccl-tests, PERFORMANCE.md).
double bus_factor(std::string_view kind, double ranks) {
  if (contains(kind, "allreduce")) return 2 * (ranks - 1) / ranks;
  if (contains(kind, "gather") || contains(kind, "reduce_scatter") || contains(kind, "to_all") ||
      contains(kind, "alltoall")) {
    return (ranks - 1) / ranks;
  }
  return 1;
}

std::optional<Bytes> bytes_of(const Trace& trace, const CollectiveArgs& args) {
  constexpr std::int64_t most = std::int64_t{1} << 50;
  const auto size = element_bytes(trace.text(args.dtype));
  const std::int64_t elements = std::max(args.in_elements, args.out_elements);
  if (!size || elements < 0 || elements > most) return std::nullopt;
  return Bytes{WideInt{elements} * *size};
}

struct Key {
  std::string kind, dtype;
  std::optional<Bytes> bytes;
  std::optional<std::int64_t> group_size;
  auto operator<=>(const Key&) const = default;
};

Key key_of(const Trace& trace, const DeviceEvent& event) {
  if (event.collective == no_text) return {.kind = collective_kind(trace.text(event.name))};
  const CollectiveArgs& args = trace.collectives[event.collective];
  return {.kind = std::string{trace.text(args.name)},
          .dtype = std::string{trace.text(args.dtype)},
          .bytes = bytes_of(trace, args),
          .group_size = args.group_size > 0 ? std::optional{args.group_size} : std::nullopt};
}

}  // namespace

std::string collective_kind(std::string_view kernel) {
  struct Row {
    std::string_view part, kind;
  };
  static constexpr auto rows = std::to_array<Row>({{"AllReduce", "allreduce"},
                                                   {"AllGather", "allgather"},
                                                   {"ReduceScatter", "reduce_scatter"},
                                                   {"AllToAll", "all_to_all"},
                                                   {"Broadcast", "broadcast"},
                                                   {"SendRecv", "send_recv"},
                                                   {"Reduce_", "reduce"},
                                                   {"all_reduce", "allreduce"},
                                                   {"cross_device_reduce", "allreduce"},
                                                   {"dispatch", "expert_dispatch"},
                                                   {"combine", "expert_combine"}});
  for (const Row& row : rows) {
    if (contains(kernel, row.part)) return std::string{row.kind};
  }
  return std::string{kernel};
}

std::vector<CollectiveSummary> summarize_collectives(const Trace& trace,
                                                     std::span<const std::uint32_t> device_events) {
  std::map<Key, CollectiveSummary> groups;
  for (const std::uint32_t index : device_events) {
    const DeviceEvent& event = trace.device_events[index];
    if (event.kind != DeviceClass::communication) continue;
    const Key key = key_of(trace, event);
    CollectiveSummary& group = groups[key];
    ++group.count;
    group.time += event.duration;
  }
  std::vector<CollectiveSummary> summaries;
  for (auto& [key, group] : groups) {
    group.kind = key.kind;
    group.dtype = key.dtype;
    group.bytes = key.bytes;
    group.group_size = key.group_size;
    set_bandwidth(group, group.time);
    summaries.push_back(std::move(group));
  }
  std::stable_sort(summaries.begin(), summaries.end(), [](const auto& a, const auto& b) {
    return a.time > b.time;
  });
  return summaries;
}

void set_bandwidth(CollectiveSummary& summary, TraceNs time) {
  if (!summary.bytes || !summary.group_size || time <= 0) return;
  const double moved = static_cast<double>(summary.bytes->value) *
                       bus_factor(summary.kind, static_cast<double>(*summary.group_size));
  summary.bus_bytes_per_second =
      moved * static_cast<double>(summary.count) / (static_cast<double>(time) * 1e-9);
}

std::vector<CollectiveCall> list_collectives(const Trace& trace,
                                             std::span<const std::uint32_t> device_events,
                                             std::span<const CollectiveSummary> summaries) {
  std::map<Key, std::size_t> sizes;
  for (std::size_t i = 0; i < summaries.size(); ++i) {
    const CollectiveSummary& one = summaries[i];
    sizes[{one.kind, one.dtype, one.bytes, one.group_size}] = i;
  }
  std::vector<CollectiveCall> calls;
  for (const std::uint32_t index : device_events) {
    const DeviceEvent& event = trace.device_events[index];
    if (event.kind != DeviceClass::communication) continue;
    const bool stated = event.collective != no_text;
    const CollectiveArgs args = stated ? trace.collectives[event.collective] : CollectiveArgs{};
    Key key = key_of(trace, event);
    const std::size_t size = sizes.at(key);
    calls.push_back({.group = std::string{trace.text(args.group)},
                     .kind = std::move(key.kind),
                     .sequence = args.sequence,
                     .size = size,
                     .time = {event.start, event.end()}});
  }
  return calls;
}

}  // namespace flopmeter
