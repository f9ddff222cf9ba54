// SPDX-License-Identifier: Apache-2.0
// The simulated device: settings, timeline, and log.
//
// Nothing runs in the background. A launch immediately computes the start and end of its kernel; an
// event is a point in time; a synchronization sleeps until that time. Therefore kernel intervals
// are exact on a loaded machine.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace simgpu {

using Time = int64_t;  // nanoseconds of CLOCK_MONOTONIC, as Python's time.monotonic_ns()

Time now();
/// Sleeps, and spins for the last 70 microseconds.
void wait_until(Time time);

/// Name, default, and meaning. All are doubles, so that one list serves Python; switches are 0
/// or 1.
// clang-format off
#define SIMGPU_SETTINGS(X)                                                             \
  X(peak_tflops, 100) /* matmuls in 16 bits */                                         \
  X(peak_tflops_fp32, 50) /* matmuls in 32 bits */                                     \
  X(matmul_efficiency, 0.8) /* of the peak */                                          \
  X(bandwidth_gbs, 1000) /* device memory */                                           \
  X(kernel_us, 2) /* fixed time of each kernel */                                      \
  X(launch_us, 4) /* from the launch call to the earliest start */                     \
  X(launch_host_us, 0) /* additional host time of each launch */                       \
  X(graph_launch_us, 10) /* from a graph's replay to its first kernel */               \
  X(graph_kernel_us, 1) /* fixed time of each kernel of a graph */                     \
  X(queue_depth, 1024) /* launches that may wait on a stream before the host blocks */ \
  X(pinned_gbs, 24) /* host link, pinned memory */                                     \
  X(pageable_gbs, 6) /* host link, pageable memory */                                  \
  X(copy_us, 5) /* fixed time of each copy over the host link */                       \
  X(network_gbs, 50) /* bus bandwidth of a collective */                               \
  X(network_us, 15) /* fixed time of each collective */                                \
  X(simulated_world, 8) /* ranks that a process group of one process stands for */     \
  X(memory_gb, 80) /* device memory */                                                 \
  X(event_host_us, 0) /* additional host time of an event record */                    \
  X(event_device_us, 0) /* device time of an event */                                  \
  X(event_latency, 1) /* 0: an idle stream reaches an event when it is recorded */     \
  X(event_resolution_us, 0) /* of the time of an event */                              \
  X(events_in_queue, 0) /* 1: an event takes a place in the launch queue */            \
  X(elapsed_time, 1) /* 0: the guard has no elapsedTime (as NPU) */                    \
  X(stream_pool, 1) /* 0: the guard has no pool of streams */                          \
  X(busy_pool_streams, 0) /* streams of the pool on which others work all the time */  \
  X(capture_state, 1) /* 0: the guard does not report captures */                      \
  X(delay_kernel, 1) /* 0: the device module has no _sleep */                          \
  X(own_to_copy, 0) /* 1: the backend has its own _to_copy, which calls no copy_ */    \
  X(fused_attention, 1) /* 0: scaled_dot_product_attention decomposes */               \
  X(values, 0) /* 1: compute real values on the CPU */
// clang-format on
struct Settings {
#define SIMGPU_MEMBER(name, value) double name = value;
  SIMGPU_SETTINGS(SIMGPU_MEMBER)
#undef SIMGPU_MEMBER
};
Settings& settings();
double* find_setting(std::string_view name);  // null: no such setting
std::vector<std::string> setting_names();

enum class Kind : uint8_t { kernel, host_to_device, device_to_host, communication };
std::string_view name_of(Kind kind);

/// Request of a launch.
struct Kernel {
  std::string name;
  Kind kind = Kind::kernel;
  double flops = 0, bytes = 0;
  double ideal_ns = 0;  // of the FLOPs at the peak
  Time duration = 0;    // without the fixed time
  Time fixed = 0;
};

/// Interval of a kernel on the device.
struct Interval {
  std::string name;
  int64_t stream;
  Kind kind;
  Time call, enqueued, start, end;
  double flops, bytes, ideal_ns;
  int64_t graph;         // id of the replayed graph, or 0
  uint64_t external_id;  // correlation id of the profiler, or 0
  int64_t thread;
};

/// A host call other than a launch: synchronization, event record, query.
struct Call {
  std::string_view name;
  Time begin, end;
  int64_t stream;
  int64_t thread;
  bool during_capture;
};

struct Graph;
struct Event {
  Time time = 0;
  bool timing = true;
  int64_t stream = 0;
  Graph* captured = nullptr;  // recorded during this graph's capture: has no time
  int64_t captured_index = -1;
};

/// One step of a captured graph.
struct Node {
  enum class Type : uint8_t { kernel, record, wait } type;
  int64_t stream;  // of the capture; a branch of the graph
  int64_t event = -1;
  Kernel kernel;
  std::function<void()> values;
};
struct Graph {
  int64_t id = 0;
  std::vector<Node> nodes;
  int64_t events = 0;
  bool invalid = false;  // a forbidden call ended the capture
};

struct Mark {
  std::string name;
  Time host;
  Time device;       // when an event recorded at this point is reached
  int64_t log_size;  // intervals logged before it
};

class Device {
 public:
  // Launches. `start_at` is a start that all ranks of a collective have agreed on.
  Time launch(int64_t stream, Kernel kernel, std::function<void()> values = {}, Time start_at = 0);
  void replay(int64_t stream, Graph& graph);

  // Streams. Stream 0 is the default stream; pool streams are shared in rotation.
  int64_t stream_from_pool();
  int64_t new_stream();
  Time tail(int64_t stream);
  bool query_stream(int64_t stream);
  void synchronize_stream(int64_t stream, std::string_view why = "synchronize_stream");
  void synchronize_device();
  /// When all streams are done.
  Time last_end();
  /// Sleeps until `time`; the call is logged under `why`.
  void wait_for(Time time, int64_t stream, std::string_view why, Time begin);

  // Events.
  void record(Event& event, int64_t stream);
  void block(const Event& event, int64_t stream);
  /// Later work of `to` waits for the work of `from`; no event is logged.
  void join(int64_t from, int64_t to);
  bool query(const Event& event);
  void synchronize(const Event& event);
  double elapsed_ms(const Event& from, const Event& to);

  // Capture.
  void begin_capture(int64_t stream, Graph& graph);
  void end_capture(int64_t stream);
  bool is_capturing(int64_t stream);

  // Memory of what happened.
  void mark(std::string name, int64_t stream);
  void reset_log();
  std::vector<Interval> intervals(size_t from = 0);
  std::vector<Call> calls();
  std::vector<Mark> marks();
  size_t log_size();

 private:
  struct Stream {
    Time tail = 0;
    std::deque<Time> starts;  // of launches that have not started yet
    Graph* capturing = nullptr;
  };
  Stream& at(int64_t stream) { return streams_[stream]; }
  void wait_for_room(Stream& queue, std::unique_lock<std::mutex>& lock);
  void forbid_while_capturing(std::string_view what);
  Time reached(int64_t stream);
  void place(Event& event, int64_t stream);
  void let_wait(const Event& event, int64_t stream);
  void add_interval(
      const Kernel&, int64_t stream, Time call, Time enqueued, Time start, Time end, int64_t graph);
  void add_call(std::string_view name, Time begin, int64_t stream);

  std::mutex mutex_;
  std::map<int64_t, Stream> streams_;
  int64_t pool_next_ = 0, streams_made_ = 0;
  Graph* capture_ = nullptr;  // one capture at a time
  int64_t graphs_ = 0;
  std::vector<Interval> log_;
  std::vector<Call> calls_;
  std::vector<Mark> marks_;
};
Device& device();

/// The profiler's correlation id of the current thread; 0 if none.
uint64_t& external_id();

/// Stream of this thread.
int64_t& current_stream();

inline Time microseconds(double us) {
  return static_cast<Time>(us * 1e3);
}
/// A kernel on the device's memory and matmul units.
Kernel roofline(std::string name, double flops, bool is_16_bit, double bytes);

}  // namespace simgpu
