// SPDX-License-Identifier: Apache-2.0
#include "timeline.h"

#include <c10/util/Exception.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace simgpu {
namespace {
constexpr int64_t pool_streams = 32;
constexpr std::pair<std::string_view, double Settings::*> setting_table[] = {
#define SIMGPU_ROW(name, value) {#name, &Settings::name},
    SIMGPU_SETTINGS(SIMGPU_ROW)
#undef SIMGPU_ROW
};

int64_t thread_id() {
  thread_local const int64_t id = syscall(SYS_gettid);
  return id;
}
void spin_until(Time time) {
  while (now() < time) {
  }
}
}  // namespace

Time now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

void wait_until(Time time) {
  constexpr Time spin = 70'000;
  const Time left = time - now() - spin;
  if (left > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(left));
  spin_until(time);
}

Settings& settings() {
  static Settings instance;
  return instance;
}
double* find_setting(std::string_view name) {
  for (const auto& [known, member] : setting_table) {
    if (known == name) return &(settings().*member);
  }
  return nullptr;
}
std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for (const auto& entry : setting_table) names.emplace_back(entry.first);
  return names;
}

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::kernel:
      return "kernel";
    case Kind::host_to_device:
      return "host_to_device";
    case Kind::device_to_host:
      return "device_to_host";
    case Kind::communication:
      return "communication";
  }
  return "";
}

Device& device() {
  static auto* instance = new Device;  // never destroyed: events outlive static destructors
  return *instance;
}
uint64_t& external_id() {
  thread_local uint64_t id = 0;
  return id;
}
int64_t& current_stream() {
  thread_local int64_t stream = 0;
  return stream;
}

Kernel roofline(std::string name, double flops, bool is_16_bit, double bytes) {
  const Settings& s = settings();
  const double ideal_ns = flops / ((is_16_bit ? s.peak_tflops : s.peak_tflops_fp32) * 1e3);
  const double math_ns = ideal_ns / s.matmul_efficiency, memory_ns = bytes / s.bandwidth_gbs;
  return {.name = std::move(name),
          .flops = flops,
          .bytes = bytes,
          .ideal_ns = ideal_ns,
          .duration = static_cast<Time>(std::max(math_ns, memory_ns)),
          .fixed = microseconds(s.kernel_us)};
}

void Device::add_interval(const Kernel& kernel,
                          int64_t stream,
                          Time call,
                          Time enqueued,
                          Time start,
                          Time end,
                          int64_t graph) {
  log_.push_back({kernel.name,
                  stream,
                  kernel.kind,
                  call,
                  enqueued,
                  start,
                  end,
                  kernel.flops,
                  kernel.bytes,
                  kernel.ideal_ns,
                  graph,
                  external_id(),
                  thread_id()});
}

// A full queue blocks the host until its oldest launches have started.
void Device::wait_for_room(Stream& queue, std::unique_lock<std::mutex>& lock) {
  const auto depth = static_cast<size_t>(settings().queue_depth);
  for (;;) {
    while (!queue.starts.empty() && queue.starts.front() <= now()) queue.starts.pop_front();
    if (queue.starts.size() < depth) return;
    const Time free_at = queue.starts[queue.starts.size() - depth];
    lock.unlock();
    wait_until(free_at);
    lock.lock();
  }
}

Time Device::launch(int64_t stream, Kernel kernel, std::function<void()> values, Time start_at) {
  const Settings& s = settings();
  const Time call = now();
  std::unique_lock lock(mutex_);
  Stream& queue = at(stream);
  if (queue.capturing != nullptr) {
    queue.capturing->nodes.push_back(
        {Node::Type::kernel, stream, -1, std::move(kernel), std::move(values)});
    return 0;
  }
  wait_for_room(queue, lock);
  if (s.launch_host_us > 0) spin_until(now() + microseconds(s.launch_host_us));
  const Time enqueued = now();
  const Time earliest = start_at != 0 ? start_at : enqueued + microseconds(s.launch_us);
  const Time start = std::max(earliest, queue.tail);
  const Time end = start + kernel.duration + kernel.fixed;
  queue.tail = end;
  queue.starts.push_back(start);
  add_interval(kernel, stream, call, enqueued, start, end, 0);
  lock.unlock();
  if (values) values();
  return end;
}

void Device::replay(int64_t stream, Graph& graph) {
  const Settings& s = settings();
  const Time call = now();
  std::unique_lock lock(mutex_);
  Stream& queue = at(stream);
  TORCH_CHECK(queue.capturing == nullptr, "simgpu: replay during capture is not supported");
  wait_for_room(queue, lock);
  const Time enqueued = now();
  const Time begin = std::max(enqueued + microseconds(s.graph_launch_us), queue.tail);
  queue.starts.push_back(begin);
  std::map<int64_t, Time> branch;  // tail of each stream of the capture
  std::vector<Time> event(static_cast<size_t>(graph.events), begin);
  Time last = begin;
  for (const Node& node : graph.nodes) {
    Time& tail = branch.try_emplace(node.stream, begin).first->second;
    if (node.type == Node::Type::record) {
      event[static_cast<size_t>(node.event)] = tail;
    } else if (node.type == Node::Type::wait) {
      tail = std::max(tail, event[static_cast<size_t>(node.event)]);
    } else {
      const Kernel& k = node.kernel;
      const Time start = tail;
      const Time fixed = k.kind == Kind::kernel ? microseconds(s.graph_kernel_us) : k.fixed;
      tail = start + k.duration + fixed;
      add_interval(k, stream, call, enqueued, start, tail, graph.id);
    }
    last = std::max(last, tail);
  }
  queue.tail = last;
  lock.unlock();
  for (const Node& node : graph.nodes) {
    if (node.values) node.values();
  }
}

int64_t Device::stream_from_pool() {
  const std::lock_guard lock(mutex_);
  return 1 + pool_next_++ % pool_streams;
}
int64_t Device::new_stream() {
  const std::lock_guard lock(mutex_);
  return 1 + pool_streams + streams_made_++;
}
Time Device::tail(int64_t stream) {
  const std::lock_guard lock(mutex_);
  return at(stream).tail;
}

void Device::add_call(std::string_view name, Time begin, int64_t stream) {
  calls_.push_back({name, begin, now(), stream, thread_id(), capture_ != nullptr});
}

// As CUDA in its default capture mode: such a call from any thread fails and spoils the capture.
void Device::forbid_while_capturing(std::string_view what) {
  if (capture_ == nullptr) return;
  capture_->invalid = true;
  add_call(what, now(), 0);
  TORCH_CHECK(false, "simgpu: ", what, " is not permitted when a stream is capturing");
}

bool Device::query_stream(int64_t stream) {
  const std::lock_guard lock(mutex_);
  forbid_while_capturing("query_stream");
  add_call("query_stream", now(), stream);
  return at(stream).tail <= now();
}

void Device::wait_for(Time time, int64_t stream, std::string_view why, Time begin) {
  {
    const std::lock_guard lock(mutex_);
    forbid_while_capturing(why);
  }
  wait_until(time);
  const std::lock_guard lock(mutex_);
  add_call(why, begin, stream);
}
void Device::synchronize_stream(int64_t stream, std::string_view why) {
  wait_for(tail(stream), stream, why, now());
}
Time Device::last_end() {
  const std::lock_guard lock(mutex_);
  Time last = 0;
  for (const auto& [id, stream] : streams_) last = std::max(last, stream.tail);
  return last;
}
void Device::synchronize_device() {
  wait_for(last_end(), -1, "synchronize_device", now());
}

// When an event that is recorded now is reached; the caller holds the lock.
Time Device::reached(int64_t stream) {
  const Settings& s = settings();
  const Time seen = now() + (s.event_latency != 0 ? microseconds(s.launch_us) : 0);
  const bool is_busy = stream >= 1 && stream <= pool_streams && stream <= s.busy_pool_streams;
  return std::max(is_busy ? seen + microseconds(1e6) : seen, at(stream).tail);
}
// Records the event on the stream; the caller holds the lock.
void Device::place(Event& event, int64_t stream) {
  Stream& queue = at(stream);
  event.stream = stream;
  event.captured = queue.capturing;
  if (queue.capturing != nullptr) {
    event.captured_index = queue.capturing->events++;
    queue.capturing->nodes.push_back({Node::Type::record, stream, event.captured_index, {}, {}});
  } else {
    event.time = reached(stream);
  }
}
// Lets the stream wait for the event; the caller holds the lock.
void Device::let_wait(const Event& event, int64_t stream) {
  Stream& queue = at(stream);
  if (event.captured != nullptr && event.captured == capture_) {  // the stream joins the capture
    queue.capturing = capture_;
    capture_->nodes.push_back({Node::Type::wait, stream, event.captured_index, {}, {}});
  } else if (queue.capturing == nullptr) {
    queue.tail = std::max(queue.tail, event.time);
  }
}

void Device::record(Event& event, int64_t stream) {
  const Settings& s = settings();
  const Time begin = now();
  if (s.event_host_us > 0) spin_until(begin + microseconds(s.event_host_us));
  std::unique_lock lock(mutex_);
  const bool takes_place = s.events_in_queue != 0 && at(stream).capturing == nullptr;
  if (takes_place) wait_for_room(at(stream), lock);
  place(event, stream);
  if (takes_place) at(stream).starts.push_back(event.time);
  if (event.captured == nullptr && s.event_device_us > 0) {
    at(stream).tail = event.time + microseconds(s.event_device_us);
  }
  add_call("record_event", begin, stream);
}
void Device::block(const Event& event, int64_t stream) {
  const std::lock_guard lock(mutex_);
  let_wait(event, stream);
}
void Device::join(int64_t from, int64_t to) {
  const std::lock_guard lock(mutex_);
  Event event;
  place(event, from);
  let_wait(event, to);
}
bool Device::query(const Event& event) {
  const std::lock_guard lock(mutex_);
  forbid_while_capturing("query_event");
  TORCH_CHECK(event.captured == nullptr, "simgpu: the event was recorded during a capture");
  add_call("query_event", now(), event.stream);
  return event.time <= now();
}
void Device::synchronize(const Event& event) {
  wait_for(event.time, event.stream, "synchronize_event", now());
}
double Device::elapsed_ms(const Event& from, const Event& to) {
  TORCH_CHECK(settings().elapsed_time != 0, "Backend doesn't support elapsedTime.");
  TORCH_CHECK(from.timing && to.timing, "simgpu: an event was made without timing");
  TORCH_CHECK(from.captured == nullptr && to.captured == nullptr,
              "simgpu: an event was recorded during a capture");
  TORCH_CHECK(from.time <= now() && to.time <= now(), "simgpu: an event is not done yet");
  const std::lock_guard lock(mutex_);
  add_call("elapsed_time", now(), to.stream);
  const Time step = std::max<Time>(microseconds(settings().event_resolution_us), 1);
  const Time elapsed = to.time / step * step - from.time / step * step;
  return static_cast<float>(static_cast<double>(elapsed) / 1e6);  // a float, as on CUDA
}

void Device::begin_capture(int64_t stream, Graph& graph) {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(stream != 0, "simgpu: the default stream cannot be captured");
  TORCH_CHECK(capture_ == nullptr, "simgpu: another capture is under way");
  graph = Graph{.id = ++graphs_};
  capture_ = at(stream).capturing = &graph;
}
void Device::end_capture(int64_t) {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(capture_ != nullptr, "simgpu: no capture is under way");
  for (auto& [id, stream] : streams_) stream.capturing = nullptr;
  const bool invalid = std::exchange(capture_, nullptr)->invalid;
  TORCH_CHECK(!invalid, "simgpu: operation failed due to a previous error during capture");
}
bool Device::is_capturing(int64_t stream) {
  const std::lock_guard lock(mutex_);
  return at(stream).capturing != nullptr;
}

void Device::mark(std::string name, int64_t stream) {
  const std::lock_guard lock(mutex_);
  const Time host = now();
  marks_.push_back({std::move(name), host, std::max(host, at(stream).tail), int64_t(log_.size())});
}
void Device::reset_log() {
  const std::lock_guard lock(mutex_);
  log_.clear();
  calls_.clear();
  marks_.clear();
}
std::vector<Interval> Device::intervals(size_t from) {
  const std::lock_guard lock(mutex_);
  return {log_.begin() + static_cast<int64_t>(std::min(from, log_.size())), log_.end()};
}
std::vector<Call> Device::calls() {
  const std::lock_guard lock(mutex_);
  return calls_;
}
std::vector<Mark> Device::marks() {
  const std::lock_guard lock(mutex_);
  return marks_;
}
size_t Device::log_size() {
  const std::lock_guard lock(mutex_);
  return log_.size();
}

}  // namespace simgpu
