// SPDX-License-Identifier: Apache-2.0
#include "chunks.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

namespace flopmeter {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{8} << 20;

std::size_t thread_count(const TraceReadOptions& options, std::size_t bytes) {
  const std::size_t wanted = options.threads > 0
                                 ? static_cast<std::size_t>(options.threads)
                                 : std::max<std::size_t>(std::thread::hardware_concurrency(), 1);
  return std::clamp<std::size_t>(bytes / chunk_bytes, 1, wanted);
}

/// Copies `from` to the end of `to` and releases it.
template <class T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
  std::vector<T>{}.swap(from);
}

}  // namespace

EventReader::EventReader(std::string_view text,
                         const TraceReadOptions& options,
                         const MappedMemory* memory)
    : text_(text), options_(options), memory_(memory) {
  const std::size_t threads = thread_count(options, text.size());
  for (std::size_t i = 0; i < threads; ++i) stores_.push_back(std::make_unique<EventStore>());
}

/// Chunks that start at a likely start of an event, which is certain only when the chunk before it
/// has been read.
std::vector<EventReader::Chunk> EventReader::cut(std::size_t from) const {
  std::vector<Chunk> chunks;
  std::size_t start = from;
  while (start < text_.size()) {
    const std::size_t guess =
        start + chunk_bytes < text_.size() ? find_event(text_, start + chunk_bytes) : text_.npos;
    const std::size_t limit = std::min(guess, text_.size());
    chunks.push_back({.start = start, .limit = limit});
    start = limit;
  }
  return chunks;
}

void EventReader::read_chunk(Chunk& chunk, std::size_t store) {
  chunk.store = store;
  // Room for more operators than a chunk has: growing would copy, and unused pages cost nothing.
  constexpr std::size_t shortest_operator = 128;
  chunk.block.host_events.reserve((chunk.limit - chunk.start) / shortest_operator);
  JsonCursor cursor{text_, chunk.start};
  EventFields fields;
  while (!cursor.at_end()) {
    if (cursor.take(']')) {
      chunk.closed = true;
      break;
    }
    const std::size_t start = cursor.position();
    if (start >= chunk.limit) break;
    fields = {};
    if (read_event(cursor, fields) &&
        (cursor.take(',') || cursor.peek() == ']' || cursor.at_end())) {
      stores_[store]->add(fields, chunk.block);
      continue;
    }
    ++chunk.block.skipped;
    cursor.move_to(std::min(find_event(text_, start + 1), text_.size()));
  }
  chunk.stop = cursor.position();
}

void EventReader::read_in_parallel(std::vector<Chunk>& chunks) {
  std::atomic<std::size_t> next = 0;
  std::mutex guard;
  std::size_t done = 0;
  std::size_t released = 0;  // chunks
  const auto finish = [&](Chunk& chunk) {
    const std::lock_guard lock{guard};
    chunk.done = true;
    // A chunk that did not start where the one before it stopped is read again, and so may all
    // chunks behind it be.
    while (memory_ != nullptr && released < chunks.size() && chunks[released].done &&
           (released == 0 || chunks[released].start == chunks[released - 1].stop)) {
      const Chunk& read = chunks[released++];
      memory_->release(text_.data() + read.start, text_.data() + std::min(read.limit, read.stop));
    }
    if (options_.progress)
      options_.progress(static_cast<double>(++done) / static_cast<double>(chunks.size()));
  };
  std::exception_ptr failure;
  const auto work = [&](std::size_t store) {
    try {
      for (std::size_t i = next++; i < chunks.size(); i = next++) {
        read_chunk(chunks[i], store);
        finish(chunks[i]);
      }
    } catch (...) {  // no memory: for the thread that called
      const std::lock_guard lock{guard};
      failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t store = 1; store < stores_.size(); ++store) threads.emplace_back(work, store);
    work(0);
  }
  if (failure) std::rethrow_exception(failure);
}

bool EventReader::read(JsonCursor& cursor) {
  if (!cursor.take('[')) return cursor.skip_value();
  std::vector<Chunk> chunks = cut(cursor.position());
  read_in_parallel(chunks);
  std::size_t expected = cursor.position();
  for (Chunk& chunk : chunks) {
    if (chunk.limit <= expected && expected != chunk.start) continue;  // read by the one before
    if (chunk.start != expected) {
      chunk = {.start = expected, .limit = chunk.limit};
      read_chunk(chunk, 0);
    }
    expected = chunk.stop;
    const bool closed = chunk.closed;
    chunks_.push_back(std::move(chunk));
    if (closed) {
      cursor.move_to(expected);
      return true;
    }
  }
  cursor.move_to(text_.size());
  return false;
}

void EventReader::finish(Trace& trace) {
  // Numbers of a thread's tables to numbers of the trace.
  TextTable texts;
  TextTable threads;
  struct Renumbering {
    std::vector<TextId> texts, threads;
  };
  std::vector<Renumbering> numbers(stores_.size());
  for (std::size_t i = 0; i < stores_.size(); ++i) {
    const auto renumber = [](const TextTable& from, TextTable& to, std::vector<TextId>& ids) {
      for (TextId id = 0; id < from.size(); ++id) ids.push_back(to.id(from[id]));
    };
    renumber(stores_[i]->texts(), texts, numbers[i].texts);
    renumber(stores_[i]->threads(), threads, numbers[i].threads);
  }
  std::size_t device_events = 0;
  // By thread: the place of its next host event.  Events of a thread are then nearly in order.
  std::vector<std::size_t> places(threads.size() + 1);
  for (const Chunk& chunk : chunks_) {
    device_events += chunk.block.device_events.size();
    for (const HostEvent& event : chunk.block.host_events)
      ++places[numbers[chunk.store].threads[event.thread] + 1];
  }
  std::partial_sum(places.begin(), places.end(), places.begin());
  trace.device_events.reserve(device_events);
  trace.host_events.resize(places.back());

  for (Chunk& chunk : chunks_) {
    const Renumbering& to = numbers[chunk.store];
    const auto rename = [&](TextId& id) {
      if (id != no_text) id = to.texts[id];
    };
    for (DeviceEvent& event : chunk.block.device_events) {
      rename(event.name);
      if (event.collective != no_text)
        event.collective += static_cast<std::uint32_t>(trace.collectives.size());
    }
    for (HostEvent& event : chunk.block.host_events) {
      for (TextId* id : {&event.name, &event.dims, &event.types, &event.concrete}) rename(*id);
      event.thread = to.threads[event.thread];
      trace.host_events[places[event.thread]++] = event;
    }
    std::vector<HostEvent>{}.swap(chunk.block.host_events);
    for (CollectiveArgs& args : chunk.block.collectives) {
      for (TextId* id : {&args.name, &args.dtype, &args.group}) rename(*id);
    }
    for (OtherEvent& event : chunk.block.other_events) {
      for (TextId* id : {&event.category, &event.process, &event.name}) rename(*id);
    }
    append(trace.device_events, chunk.block.device_events);
    append(trace.collectives, chunk.block.collectives);
    append(trace.other_events, chunk.block.other_events);
    trace.events += chunk.block.events;
    trace.skipped_events += chunk.block.skipped;
    trace.has_shapes |= chunk.block.has_shapes;
  }
  chunks_.clear();
  trace.texts.reserve(texts.size());
  for (TextId id = 0; id < texts.size(); ++id) trace.texts.push_back(unescape_json(texts[id]));
}

}  // namespace flopmeter
