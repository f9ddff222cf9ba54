// SPDX-License-Identifier: Apache-2.0
//
// A PyTorch profiler trace in memory: the events that the analysis needs, with exact times.  Kineto
// writes them as Chrome JSON; `read_trace` accepts every version of that format.
#pragma once

#include <flopmeter/core/result.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// A time or duration in a trace, in integer nanoseconds.
using TraceNs = std::int64_t;

/// An index into Trace::texts; `no_text` if the event has no such text.
using TextId = std::uint32_t;
inline constexpr TextId no_text = std::numeric_limits<TextId>::max();
inline constexpr std::int64_t no_id = -1;

enum class DeviceClass : std::uint8_t { compute, communication, memcpy, memset };
inline constexpr std::size_t device_class_count = 4;

/// A kernel, copy, or fill on a device.
struct DeviceEvent {
  TraceNs start = 0;
  TraceNs duration = 0;
  std::int64_t correlation = no_id;
  std::int64_t external_id = no_id;
  std::int64_t bytes = no_id;  ///< of a copy or fill
  TextId name = no_text;
  std::int32_t device = 0;
  std::uint32_t collective = no_text;  ///< index into Trace::collectives
  DeviceClass kind = DeviceClass::compute;

  [[nodiscard]] TraceNs end() const { return start + duration; }
};

enum class HostKind : std::uint8_t { annotation, op, launch, driver_launch };

/// An operator, an annotation, or a call of the device's runtime, on a thread of the host.
struct HostEvent {
  TraceNs start = 0;
  TraceNs duration = 0;
  std::int64_t id = no_id;        ///< of a launch: correlation; of an operator: external id
  std::int64_t sequence = no_id;  ///< autograd's sequence number
  TextId name = no_text;
  std::uint32_t thread = 0;
  TextId dims = no_text;      ///< arguments, recorded only for operators with a FLOP cost
  TextId types = no_text;     ///
  TextId concrete = no_text;  ///< scalar arguments
  HostKind kind = HostKind::op;

  [[nodiscard]] TraceNs end() const { return start + duration; }
};

/// The arguments of a collective, as its kernel states them.
struct CollectiveArgs {
  TextId name = no_text;
  TextId dtype = no_text;
  TextId group = no_text;
  std::int64_t in_elements = no_id;
  std::int64_t out_elements = no_id;
  std::int64_t group_size = no_id;
  std::int64_t sequence = no_id;
};

/// One entry of `deviceProperties`.
struct TraceDevice {
  std::int64_t id = 0;
  std::string name;
  std::optional<std::int64_t> multiprocessors;
  std::optional<std::int64_t> memory_bytes;
};

/// An event of a category that the analysis does not interpret: work of an accelerator that Kineto
/// lists under a separate name (MTIA, HPU, private backends).
struct OtherEvent {
  TraceNs start = 0;
  TraceNs duration = 0;
  TextId category = no_text;
  TextId process = no_text;  ///< the device, or the process that called it
  TextId name = no_text;
};

struct Trace {
  std::string file;
  std::vector<DeviceEvent> device_events;
  std::vector<HostEvent> host_events;
  std::vector<CollectiveArgs> collectives;
  std::vector<std::string> texts;
  std::vector<TraceDevice> devices;
  std::vector<OtherEvent> other_events;
  std::optional<int> rank;        ///< as `distributedInfo` states it
  std::optional<int> world_size;  ///
  TraceNs base_time = 0;          ///< added to every time to get nanoseconds since 1970
  std::int64_t events = 0;        ///< in the file, of any kind
  std::int64_t skipped_events = 0;
  bool truncated = false;   ///< the file ends early
  bool has_shapes = false;  ///< some operator with a FLOP cost states the shapes of its inputs

  [[nodiscard]] std::string_view text(TextId id) const {
    return id == no_text ? std::string_view{} : std::string_view{texts[id]};
  }
};

struct TraceReadOptions {
  int threads = 0;  ///< 0: one per processor
  /// Called from any of the reader's threads with the share of the file that was read, 0 to 1.
  std::function<void(double)> progress;
};

/// Reads a trace: plain or gzip, object or array form.  A damaged event is skipped and counted.  An
/// error states why a file is not a trace, or that it holds no events.
Result<Trace> read_trace(const std::string& path, const TraceReadOptions& options = {});

/// Reads the text of a trace.
Result<Trace> parse_trace(std::string_view json, const TraceReadOptions& options = {});

}  // namespace flopmeter
