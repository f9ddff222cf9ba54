// SPDX-License-Identifier: Apache-2.0
//
// Reads the list of events in chunks of a few megabytes, several at a time.
#pragma once

#include "event_store.h"
#include "input_file.h"
#include "json_cursor.h"

#include <flopmeter/trace/trace.h>

#include <memory>
#include <string_view>
#include <vector>

namespace flopmeter {

class EventReader {
 public:
  /// If `memory` holds the text, its pages are released as soon as their events have been read.
  EventReader(std::string_view text, const TraceReadOptions& options, const MappedMemory* memory);

  /// Reads the list at the cursor and moves behind it.  False if the text ends before the list
  /// does.
  bool read(JsonCursor& cursor);

  /// Moves everything that was read into `trace`.
  void finish(Trace& trace);

 private:
  struct Chunk {
    std::size_t start = 0;  ///< of its first event
    std::size_t limit = 0;  ///< events that start here or behind belong to the next chunk
    std::size_t stop = 0;   ///< where reading stopped
    bool done = false;      ///< was read
    bool closed = false;    ///< the list ended in it
    std::size_t store = 0;  ///< whose tables number its texts
    EventBlock block;
  };

  [[nodiscard]] std::vector<Chunk> cut(std::size_t from) const;
  void read_in_parallel(std::vector<Chunk>& chunks);
  void read_chunk(Chunk& chunk, std::size_t store);

  std::string_view text_;
  const TraceReadOptions& options_;
  const MappedMemory* memory_;
  std::vector<std::unique_ptr<EventStore>> stores_;  // one per thread
  std::vector<Chunk> chunks_;
};

}  // namespace flopmeter
