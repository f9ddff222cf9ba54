// SPDX-License-Identifier: Apache-2.0
#include "event_store.h"

#include "numbers.h"
#include "old_convolutions.h"

#include <flopmeter/catalog/op_rule.h>

#include <algorithm>
#include <array>
#include <optional>

namespace flopmeter {
namespace {

bool same_ignoring_case(std::string_view a, std::string_view lower) {
  return std::equal(a.begin(), a.end(), lower.begin(), lower.end(), [](char x, char y) {
    return (x >= 'A' && x <= 'Z' ? static_cast<char>(x - 'A' + 'a') : x) == y;
  });
}

bool is_any_of(std::string_view category, std::span<const std::string_view> known) {
  return std::any_of(known.begin(), known.end(), [&](std::string_view one) {
    return same_ignoring_case(category, one);
  });
}

std::optional<DeviceClass> device_class(std::string_view category) {
  if (same_ignoring_case(category, "kernel") || same_ignoring_case(category, "concurrent_kernel"))
    return DeviceClass::compute;
  if (same_ignoring_case(category, "gpu_memcpy") || same_ignoring_case(category, "memcpy"))
    return DeviceClass::memcpy;
  if (same_ignoring_case(category, "gpu_memset") || same_ignoring_case(category, "memset"))
    return DeviceClass::memset;
  return std::nullopt;
}

std::optional<HostKind> host_kind(std::string_view category) {
  if (same_ignoring_case(category, "cpu_op") || same_ignoring_case(category, "operator"))
    return HostKind::op;
  if (same_ignoring_case(category, "user_annotation")) return HostKind::annotation;
  if (same_ignoring_case(category, "runtime") || category.ends_with("_runtime"))
    return HostKind::launch;
  if (category.ends_with("_driver")) return HostKind::driver_launch;
  return std::nullopt;
}

/// Categories without device work, even if their events state a device or stream.
bool is_ignored(std::string_view category) {
  static constexpr auto known = std::to_array<std::string_view>({"python_function",
                                                                 "gpu_user_annotation",
                                                                 "overhead",
                                                                 "cuda_sync",
                                                                 "xpu_sync",
                                                                 "cuda_event",
                                                                 "trace",
                                                                 "cpu_instant_event",
                                                                 "hardware_counters",
                                                                 "collective_comm",
                                                                 "cuda_profiler_range",
                                                                 "external_correlation",
                                                                 "net"});
  return is_any_of(category, known);
}

bool contains_any(std::string_view text, std::span<const std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return text.find(part) != std::string_view::npos;
  });
}

}  // namespace

DeviceClass class_of_kernel(std::string_view name) {
  if (name.starts_with("__amd_rocclr_copy")) return DeviceClass::memcpy;
  if (name.starts_with("__amd_rocclr_fill")) return DeviceClass::memset;
  // NCCL and its relatives, DeepEP's expert-parallel exchange, and custom all-reduce kernels.
  static constexpr auto parts = std::to_array<std::string_view>({"nccl",
                                                                 "rccl",
                                                                 "oneccl",
                                                                 "hccl",
                                                                 "msccl",
                                                                 "nvshmem",
                                                                 "ep::internode::",
                                                                 "ep::intranode::",
                                                                 "ep::internode_ll::",
                                                                 "cross_device_reduce",
                                                                 "multimem_all_reduce",
                                                                 "one_shot_all_reduce",
                                                                 "two_shot_all_reduce"});
  return contains_any(name, parts) ? DeviceClass::communication : DeviceClass::compute;
}

void EventStore::add(const EventFields& fields, EventBlock& block) {
  ++block.events;
  if (!is_complete_event(fields)) return;
  if (fields.category.empty()) {
    // The profiler before Kineto states the side in the process name.
    if (fields.pid == "CPU functions") add_host_event(fields, HostKind::op, block);
    if (fields.pid == "CUDA functions") add_device_event(fields, DeviceClass::compute, block);
  } else if (const auto host = host_kind(fields.category)) {
    add_host_event(fields, *host, block);
  } else if (const auto device = device_class(fields.category)) {
    add_device_event(fields, *device, block);
  } else if (fields.name.starts_with(module_prefix)) {
    add_host_event(fields, HostKind::annotation, block);
  } else if (!is_ignored(fields.category)) {
    add_other_event(fields, block);
  }
}

namespace {

struct Times {
  TraceNs start = 0;
  TraceNs duration = 0;
};

/// Empty if there is no start, or if the end is before it or beyond what an integer holds.
std::optional<Times> times_of(const EventFields& fields) {
  const auto start = parse_microseconds(fields.start);
  const auto duration =
      fields.duration.empty() ? std::optional<TraceNs>{0} : parse_microseconds(fields.duration);
  // Until the year 2039, and at most eleven days long: sums and differences cannot overflow.
  constexpr TraceNs latest = 2'200'000'000'000'000'000;
  constexpr TraceNs longest = 1'000'000'000'000'000;
  if (!start || !duration || *duration < 0 || *duration > longest || *start > latest ||
      *start < -latest) {
    return std::nullopt;
  }
  return Times{.start = *start, .duration = *duration};
}

std::int32_t device_of(const EventFields& fields) {
  const std::int64_t stated = parse_id(fields.device.empty() ? fields.pid : fields.device);
  const std::int64_t index = stated == no_id ? parse_id(fields.tid) : stated;
  const bool fits = index >= 0 && index <= std::numeric_limits<std::int32_t>::max();
  return fits ? static_cast<std::int32_t>(index) : 0;
}

}  // namespace

void EventStore::add_device_event(const EventFields& fields, DeviceClass kind, EventBlock& block) {
  const auto times = times_of(fields);
  if (!times) {
    ++block.skipped;
    return;
  }
  const TextId name = texts_.id(fields.name);
  if (kind == DeviceClass::compute)
    kind = fields.collective.empty() ? kernel_class(name) : DeviceClass::communication;
  DeviceEvent event{.start = times->start,
                    .duration = times->duration,
                    .correlation = parse_id(fields.correlation),
                    .external_id = parse_id(fields.external_id),
                    .bytes = parse_id(fields.bytes),
                    .name = name,
                    .device = device_of(fields),
                    .kind = kind};
  if (!fields.collective.empty()) {
    event.collective = static_cast<std::uint32_t>(block.collectives.size());
    block.collectives.push_back({.name = texts_.id(fields.collective),
                                 .dtype = text_or_none(fields.dtype),
                                 .group = text_or_none(fields.group),
                                 .in_elements = parse_id(fields.in_elements),
                                 .out_elements = parse_id(fields.out_elements),
                                 .group_size = parse_id(fields.group_size),
                                 .sequence = parse_id(fields.collective_sequence)});
  }
  block.device_events.push_back(event);
}

void EventStore::add_host_event(const EventFields& fields, HostKind kind, EventBlock& block) {
  const auto times = times_of(fields);
  if (!times) {
    ++block.skipped;
    return;
  }
  const bool launch = kind == HostKind::launch || kind == HostKind::driver_launch;
  HostEvent event{.start = times->start,
                  .duration = times->duration,
                  .id = parse_id(launch ? fields.correlation : fields.external_id),
                  .sequence = parse_id(fields.sequence),
                  .name = texts_.id(fields.name),
                  .thread = thread_of(fields),
                  .kind = kind};
  // Old versions write it as an operator.
  if (fields.name.starts_with("ProfilerStep#")) event.kind = HostKind::annotation;
  if (event.kind == HostKind::op && !fields.dims.empty() && has_flop_cost(event.name)) {
    block.has_shapes = true;
    event.dims = texts_.id(fields.dims);
    event.types = text_or_none(fields.types);
    event.concrete = text_or_none(fields.concrete);
  }
  block.host_events.push_back(event);
}

void EventStore::add_other_event(const EventFields& fields, EventBlock& block) {
  const auto times = times_of(fields);
  if (!times) {
    ++block.skipped;
    return;
  }
  block.other_events.push_back({.start = times->start,
                                .duration = times->duration,
                                .category = texts_.id(fields.category),
                                .process = texts_.id(fields.pid),
                                .name = texts_.id(fields.name)});
}

std::uint32_t EventStore::thread_of(const EventFields& fields) {
  if (threads_.size() == 0 || fields.tid != last_tid_ || fields.pid != last_pid_) {
    last_pid_ = fields.pid;
    last_tid_ = fields.tid;
    last_thread_ = threads_.id(last_pid_ + '\n' + last_tid_);
  }
  return last_thread_;
}

bool EventStore::has_flop_cost(TextId name) {
  if (name >= costs_.size()) costs_.resize(std::size_t{name} + 1);
  if (!costs_[name]) {
    const std::string_view text = texts_[name];
    costs_[name] = find_op_rule(text) != nullptr || is_old_convolution_backward(text);
  }
  return *costs_[name];
}

DeviceClass EventStore::kernel_class(TextId name) {
  if (name >= classes_.size()) classes_.resize(std::size_t{name} + 1);
  if (!classes_[name]) classes_[name] = class_of_kernel(texts_[name]);
  return *classes_[name];
}

}  // namespace flopmeter
