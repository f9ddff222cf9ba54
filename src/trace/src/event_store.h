// SPDX-License-Identifier: Apache-2.0
//
// Classifies the events of a trace and keeps those that the analysis needs.
#pragma once

#include "event_fields.h"
#include "text_table.h"

#include <flopmeter/trace/trace.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// The events of one part of a file.  Their texts and threads are numbered by tables that several
/// parts share.
struct EventBlock {
  std::vector<DeviceEvent> device_events;
  std::vector<HostEvent> host_events;
  std::vector<CollectiveArgs> collectives;
  std::vector<OtherEvent> other_events;
  std::int64_t events = 0;
  std::int64_t skipped = 0;
  bool has_shapes = false;
};

/// Not thread-safe; each thread of the reader has one.
class EventStore {
 public:
  /// Adds an event to `block`, or counts it as skipped if its times make no sense.
  void add(const EventFields& fields, EventBlock& block);

  [[nodiscard]] const TextTable& texts() const { return texts_; }
  [[nodiscard]] const TextTable& threads() const { return threads_; }

 private:
  void add_device_event(const EventFields& fields, DeviceClass kind, EventBlock& block);
  void add_host_event(const EventFields& fields, HostKind kind, EventBlock& block);
  void add_other_event(const EventFields& fields, EventBlock& block);
  TextId text_or_none(std::string_view text) { return text.empty() ? no_text : texts_.id(text); }
  std::uint32_t thread_of(const EventFields& fields);
  bool has_flop_cost(TextId name);
  DeviceClass kernel_class(TextId name);

  TextTable texts_;
  TextTable threads_;
  std::vector<std::optional<bool>> costs_;  // by name: whether it has a FLOP cost; empty: unknown
  std::vector<std::optional<DeviceClass>> classes_;  // by name of a kernel; empty: unknown
  std::string last_pid_, last_tid_;
  std::uint32_t last_thread_ = 0;
};

/// A kernel's class by its name: `compute` unless the name is known to copy, fill, or communicate.
DeviceClass class_of_kernel(std::string_view name);

}  // namespace flopmeter
