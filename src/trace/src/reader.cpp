// SPDX-License-Identifier: Apache-2.0
//
// Reads a whole trace: the keys around the events, and the events in chunks on several threads.
#include "chunks.h"
#include "header.h"
#include "input_file.h"

#include <flopmeter/trace/trace.h>

#include <string>

namespace flopmeter {
namespace {

Error not_a_trace(std::string what) {
  return {ErrorCode::parse_error, std::move(what)};
}

/// The format of a text that is not JSON; empty if it may be.
std::string other_format(std::string_view text) {
  if (text.starts_with("PK\x03\x04")) return "a zip archive; unzip it first";
  if (text.starts_with("version https://git-lfs"))
    return "a Git LFS pointer, not the file itself; run `git lfs pull`";
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return text.empty() ? "empty (0 bytes)" : "empty (only blanks)";
  const char first = text[text.find_first_not_of(" \t\r\n")];
  if (first == '<') return "a web page or XML, not a trace";
  if (first != '{' && first != '[') return "not JSON, so not a PyTorch profiler trace";
  return {};
}

/// Reads the keys of the outermost object until it ends or makes no sense.
void read_object(JsonCursor& cursor, std::string_view text, EventReader& events, Trace& trace) {
  cursor.take('{');
  while (!cursor.take('}')) {
    std::string_view name;
    if (!cursor.key(name)) {
      trace.truncated = true;
      // Something before the events is damaged: they can still be found.
      constexpr std::string_view events_key = "\"traceEvents\"";
      const std::size_t at = text.find(events_key, cursor.position());
      if (at == std::string_view::npos) return;
      cursor.move_to(at);
      continue;
    }
    const bool understood =
        name == "traceEvents" ? events.read(cursor) : read_header(name, cursor, trace);
    if (!understood) trace.truncated = true;
    if (cursor.at_end()) {
      trace.truncated = true;
      return;
    }
    cursor.take(',');
  }
}

Result<Trace> parse(std::string_view text,
                    const TraceReadOptions& options,
                    const MappedMemory* memory) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  if (const std::string format = other_format(text); !format.empty()) return not_a_trace(format);

  Trace trace;
  EventReader events{text, options, memory};
  JsonCursor cursor{text};
  if (cursor.peek() == '[') {
    events.read(cursor);  // the last bracket may be missing
  } else {
    read_object(cursor, text, events, trace);
  }
  events.finish(trace);
  if (trace.device_events.empty() && trace.host_events.empty() && trace.other_events.empty())
    return not_a_trace(without_events(text, trace));
  return trace;
}

}  // namespace

Result<Trace> parse_trace(std::string_view json, const TraceReadOptions& options) {
  return parse(json, options, nullptr);
}

Result<Trace> read_trace(const std::string& path, const TraceReadOptions& options) {
  Result<InputFile> input = open_input(path);
  if (!input) return input.error();
  const bool mapped = input->memory.data() != nullptr;
  Result<Trace> trace = parse(input->text, options, mapped ? &input->memory : nullptr);
  if (!trace) {
    const std::string damage = input->damaged ? " (its gzip data is damaged)" : "";
    return Error{trace.error().code, path + " is " + trace.error().message + damage};
  }
  trace->file = path;
  trace->truncated |= input->damaged;
  return trace;
}

}  // namespace flopmeter
