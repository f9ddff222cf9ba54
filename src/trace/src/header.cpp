// SPDX-License-Identifier: Apache-2.0
#include "header.h"

#include "numbers.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace flopmeter {
namespace {

/// Calls `each(key, value)` for the members of the object at the cursor.
template <class Each>
bool read_members(JsonCursor& cursor, const Each& each) {
  if (cursor.peek() != '{') return cursor.skip_value();
  cursor.take('{');
  if (cursor.take('}')) return true;
  do {
    std::string_view name;
    std::string_view value;
    if (!cursor.key(name) || !cursor.value(value)) return false;
    each(name, value);
  } while (cursor.take(','));
  return cursor.take('}');
}

std::optional<std::int64_t> number(std::string_view text) {
  const std::int64_t value = parse_id(text);
  return value == no_id ? std::nullopt : std::optional{value};
}

std::optional<int> small_number(std::string_view text) {
  const std::int64_t value = parse_id(text);
  if (value < 0 || value > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(value);
}

bool read_devices(JsonCursor& cursor, Trace& trace) {
  if (cursor.peek() != '[') return cursor.skip_value();
  cursor.take('[');
  do {
    if (cursor.peek() == ']') break;  // also behind a comma
    TraceDevice device;
    const bool read = read_members(cursor, [&](std::string_view name, std::string_view value) {
      if (name == "id") device.id = parse_id(value);
      if (name == "name") device.name = unescape_json(value);
      if (name == "numSms" || name == "multiProcessorCount") device.multiprocessors = number(value);
      if (name == "totalGlobalMem") device.memory_bytes = number(value);
    });
    if (!read) return false;
    trace.devices.push_back(std::move(device));
  } while (cursor.take(','));
  return cursor.take(']');
}

}  // namespace

bool read_header(std::string_view name, JsonCursor& cursor, Trace& trace) {
  // torch 1.8 has another name for it.
  if (name == "deviceProperties" || name == "computeProperties") return read_devices(cursor, trace);
  if (name == "distributedInfo") {
    return read_members(cursor, [&](std::string_view key, std::string_view value) {
      if (key == "rank") trace.rank = small_number(value);
      if (key == "world_size") trace.world_size = small_number(value);
    });
  }
  std::string_view value;
  if (!cursor.value(value)) return false;
  constexpr TraceNs latest = 2'200'000'000'000'000'000;  // in the year 2039
  if (name == "baseTimeNanoseconds")
    trace.base_time = std::clamp<TraceNs>(number(value).value_or(0), 0, latest);
  return true;
}

std::string without_events(std::string_view text, const Trace& trace) {
  const std::string_view start = text.substr(0, 4096);
  if (start.find("\"schema\"") != std::string_view::npos &&
      start.find("chakra") != std::string_view::npos) {
    return "a PyTorch execution trace (Chakra); flopmeter reads profiler traces";
  }
  if (text.find("\"traceEvents\"") == std::string_view::npos && text.front() != '[')
    return "a file without traceEvents, so not a PyTorch profiler trace";
  if (trace.truncated || trace.skipped_events > 0) return "damaged: no event of it can be read";
  if (trace.events > 0) {
    return "not of the PyTorch profiler: none of its " + std::to_string(trace.events) +
           " events is an operator, a kernel, or an annotation";
  }
  return "a trace without events; the profiler stopped before its first active step";
}

}  // namespace flopmeter
