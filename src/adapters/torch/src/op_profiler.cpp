// SPDX-License-Identifier: Apache-2.0
#include "op_profiler.h"

#include "context.h"
#include "device_clock.h"
#include "device_profile.h"
#include "op_frame.h"
#include "op_launches.h"
#include "op_spans.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

namespace flopmeter::torch_adapter {

using Clock = std::chrono::steady_clock;

/// Recompute, longer than dispatching an operator takes, phase.
using IdleKey = std::tuple<bool, bool, std::uint8_t>;
struct IdleSum {
  std::uint64_t count = 0;
  double seconds = 0;
};

/// The operators of one thread.
struct ThreadProfile {
  std::mutex mutex;  ///< used by another thread only when the profile ends
  std::map<RowKey, RowSum> rows;
  std::map<IdleKey, IdleSum> idle;
  OpSpans spans;  ///< of operators that no other called
  /// When the last operator ended; set for the training thread only.
  std::optional<Clock::time_point> idle_since;
  const void* hooks = nullptr;  ///< on saved tensors, around the last operator
};

namespace {

struct Profile {
  std::mutex mutex;
  std::thread::id thread = std::this_thread::get_id();
  Clock::time_point begin = Clock::now();
  std::vector<std::shared_ptr<ThreadProfile>> threads;
  double tiny_seconds = 0;
  at::CallbackHandle handle{};
  std::atomic<bool> on_device{false};
  std::atomic<bool> running{true};        ///< otherwise it waits for the device
  std::unique_ptr<DeviceProfile> device;  ///< if its times are those of the device
  double wall = 0;                        ///< once it does not run
};

/// The profile that runs or waits, or null.  Used through std::atomic_load and so on:
/// std::atomic<shared_ptr> needs GCC 12.
std::shared_ptr<Profile> current_profile;

/// Python between two operators of a model takes some tens of microseconds, in a checkpoint or an
/// autocast context up to a hundred.
constexpr double longest_dispatch = 200e-6;

double seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

std::int64_t nanoseconds(Clock::duration time) {
  return std::chrono::nanoseconds(time).count();
}

thread_local OpFrame* innermost = nullptr;

std::shared_ptr<ThreadProfile> this_thread(const std::shared_ptr<Profile>& profile) {
  thread_local std::weak_ptr<Profile> known;
  thread_local std::shared_ptr<ThreadProfile> own;
  if (known.lock() != profile) {
    known = profile;
    own = std::make_shared<ThreadProfile>();
    if (profile->thread == std::this_thread::get_id()) own->idle_since = profile->begin;
    const std::lock_guard lock(profile->mutex);
    profile->threads.push_back(own);
  }
  return own;
}

void add_idle(ThreadProfile& thread,
              Clock::time_point begin,
              Clock::time_point end,
              bool recompute,
              std::uint8_t phase) {
  const double span = seconds(end - begin);
  const bool stall = span > longest_dispatch;
  const std::lock_guard lock(thread.mutex);
  IdleSum& sum = thread.idle[{recompute, stall, phase}];
  ++sum.count;
  sum.seconds += span;
  if (stall)
    thread.spans.add({.begin_ns = nanoseconds(begin.time_since_epoch()),
                      .length_ns = nanoseconds(end - begin),
                      .phase = phase});
}

/// Adds the time between this operator and the one before it on the same level.  The code of a
/// checkpoint, which disappears with the checkpoint, changes the hooks on saved tensors or follows
/// a recomputation.
void end_idle(const OpFrame& frame, const void* hooks) {
  const OpFrame* parent = frame.parent;
  ThreadProfile& thread = *frame.thread;
  if (parent != nullptr && parent->is_node) {
    const bool checkpoint = frame.recompute || parent->recompute;
    add_idle(thread, parent->idle_since, frame.entered, checkpoint, frame.phase);
  } else if (parent == nullptr && thread.idle_since) {
    const bool checkpoint = frame.recompute || std::exchange(thread.hooks, hooks) != hooks;
    add_idle(thread, *thread.idle_since, frame.entered, checkpoint, frame.phase);
  }
}

/// Kernels belong to the outermost operator with a rule, else to the operator that launches them.
void enter_on_device(const at::RecordFunction& function, OpFrame& frame, DeviceProfile& device) {
  if (frame.is_node) return;
  const OpFrame* parent =
      frame.parent != nullptr && !frame.parent->is_node ? frame.parent : nullptr;
  if (parent != nullptr && parent->call != DeviceProfile::no_operator) {
    frame.call = parent->call;
  } else if (frame.compute) {
    frame.call = device.add(row_key(function, frame, false),
                            {.calls = 1, .flops = frame.flops, .bytes = frame.bytes});
  }
  frame.begun = parent != nullptr && parent->begun;
  if (!frame.begun) device.record(DeviceProfile::no_operator);
  frame.begun = true;
}

void leave_on_device(const at::RecordFunction& function, OpFrame& frame, DeviceProfile& device) {
  if (frame.is_node) return;
  if (frame.parent != nullptr) frame.parent->calls_others = true;
  if (frame.of_others && frame.calls_others) return;
  if (frame.call == DeviceProfile::no_operator)
    frame.call = device.add(row_key(function, frame, false), {.calls = 1});
  device.record(frame.call);
}

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& function) {
  const auto profile = std::atomic_load(&current_profile);
  if (!profile || !profile->running) return nullptr;
  const bool is_node = function.scope() == at::RecordScope::BACKWARD_FUNCTION;
  const Launches launches = profile->device && !is_node ? known_launches(function) : Launches{};
  if (launches.none) return nullptr;
  auto frame = std::make_unique<OpFrame>();
  frame->entered = Clock::now();
  frame->is_node = is_node;
  frame->of_others = launches.of_others;
  frame->in_backward = frame->is_node || (innermost != nullptr && innermost->in_backward);
  const SavedTensorHooks hooks = current_hooks();
  frame->recompute = current_task() != no_task && recomputes(hooks);
  frame->compute = innermost != nullptr && innermost->compute;
  frame->phase = __atomic_load_n(host->phase, __ATOMIC_RELAXED);
  if (!frame->is_node) {
    if (read_arguments(function, *frame, profile->device != nullptr))
      profile->on_device.store(true, std::memory_order_relaxed);
    const void* rule = nullptr;
    frame->kind = host->profile_kind(function.name(), &rule);
    if (profile->device && is_collective(function.name()))
      frame->kind = FLOPMETER_KIND_COMMUNICATION;
    if (rule != nullptr && !frame->compute) {
      frame->compute = true;
      read_cost(function, rule, *frame);
    }
  }
  frame->parent = innermost;
  if (profile->device) {
    enter_on_device(function, *frame, *profile->device);
  } else {
    if (is_node && innermost != nullptr) innermost->has_nodes = true;
    frame->thread = this_thread(profile);
    end_idle(*frame, hooks.innermost);
  }
  innermost = frame.get();
  frame->begin = frame->idle_since = Clock::now();
  return frame;
}

void add_operator(const at::RecordFunction& function,
                  OpFrame& frame,
                  Clock::time_point end,
                  double tiny) {
  const double total = seconds(end - frame.begin);
  const bool leaf = frame.children == 0;
  const bool outermost = (frame.parent == nullptr || frame.parent->is_node) && !frame.has_nodes;
  const std::lock_guard lock(frame.thread->mutex);
  const auto row =
      frame.thread->rows.try_emplace(row_key(function, frame, leaf && total < tiny)).first;
  row->second.add({.calls = 1,
                   .self = std::max(0.0, total - frame.children),
                   .flops = frame.flops,
                   .bytes = frame.bytes});
  if (outermost)
    frame.thread->spans.add({.row = &row->first,
                             .begin_ns = nanoseconds(frame.begin.time_since_epoch()),
                             .length_ns = nanoseconds(end - frame.begin),
                             .phase = frame.phase});
}

void on_end(const at::RecordFunction& function, at::ObserverContext* begun) {
  if (begun == nullptr) return;
  auto& frame = static_cast<OpFrame&>(*begun);
  const auto end = Clock::now();
  innermost = frame.parent;
  const auto profile = std::atomic_load(&current_profile);
  const bool runs = profile && profile->running;
  if (frame.thread == nullptr) {
    if (runs && profile->device) leave_on_device(function, frame, *profile->device);
    return;
  }
  if (runs) {
    if (frame.is_node) {
      add_idle(*frame.thread, frame.idle_since, end, frame.recompute, frame.phase);
    } else {
      add_operator(function, frame, end, profile->tiny_seconds);
    }
  }
  const auto left = Clock::now();
  if (OpFrame* parent = frame.parent; parent != nullptr) {
    parent->children += seconds(left - frame.entered);
    parent->idle_since = left;
    if (frame.recompute && parent->is_node) parent->recompute = true;
  } else if (frame.thread->idle_since) {
    frame.thread->idle_since = left;
  }
}

void send_row(const FlopmeterProfileReceiver& receiver, const RowKey& key, const RowSum& sum) {
  const auto& [name, kind, shape, size, backward, recompute, across_devices, phase] = key;
  FlopmeterProfileRow row{};
  row.name = name.c_str();
  row.shape = shape.c_str();
  row.calls = sum.calls;
  row.flops = sum.flops;
  row.bytes = sum.bytes;
  row.self_seconds = sum.self;
  row.elements = size > 0 ? std::int64_t{1} << (size - 1) : 0;
  row.kind = kind;
  row.phase = phase;
  row.backward = backward ? 1 : 0;
  row.recompute = recompute ? 1 : 0;
  row.across_devices = across_devices ? 1 : 0;
  receiver.row(receiver.context, &row);
}

void send_spans(const FlopmeterProfileReceiver& receiver, OpSpans& spans, Clock::time_point begin) {
  const std::int64_t begin_ns = nanoseconds(begin.time_since_epoch());
  for (const OpSpan& each : spans.finish()) {
    FlopmeterProfileSpan span{};
    span.name = each.row != nullptr ? std::get<0>(*each.row).c_str() : nullptr;
    span.start_seconds = static_cast<double>(each.begin_ns - begin_ns) / 1e9;
    span.seconds = static_cast<double>(each.length_ns) / 1e9;
    span.lane = each.lane;
    span.kind = each.row != nullptr ? std::get<1>(*each.row) : 0;
    span.phase = each.phase;
    receiver.span(receiver.context, &span);
  }
}

}  // namespace

int begin_profile(double tiny_seconds, int device_times) {
  auto profile = std::make_shared<Profile>();
  profile->tiny_seconds = tiny_seconds;
  if (device_times != 0 && device_clock_is_open())
    profile->device = std::make_unique<DeviceProfile>();
  std::shared_ptr<Profile> none;
  if (!std::atomic_compare_exchange_strong(&current_profile, &none, profile)) return 0;
  profile->handle = at::addGlobalCallback(
      at::RecordFunctionCallback(on_begin, on_end)
          .needsInputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  return 1;
}

int end_profile(const FlopmeterProfileReceiver* receiver) {
  const auto profile = std::atomic_load(&current_profile);
  if (!profile) return 1;
  if (profile->running.exchange(false)) {
    at::removeCallback(profile->handle);
    profile->wall = seconds(Clock::now() - profile->begin);
    if (profile->device) profile->device->calibrate();
  }
  if (receiver != nullptr && profile->device && !profile->device->read()) return 0;
  std::atomic_store(&current_profile, std::shared_ptr<Profile>{});
  if (receiver == nullptr) return 1;
  std::map<RowKey, RowSum> rows;
  std::map<IdleKey, IdleSum> idle;
  OpSpans spans;
  if (profile->device) rows = profile->device->rows(spans);
  const std::lock_guard lock(profile->mutex);
  std::int32_t lane = 0;
  for (const auto& thread : profile->threads) {
    const std::lock_guard thread_lock(thread->mutex);
    for (const auto& [key, sum] : thread->rows) rows[key].add(sum);
    for (const auto& [key, sum] : thread->idle) {
      idle[key].count += sum.count;
      idle[key].seconds += sum.seconds;
    }
    spans.add(thread->spans, lane++);
  }
  for (const auto& [key, sum] : rows) send_row(*receiver, key, sum);
  for (const auto& [key, sum] : idle) {
    const auto& [recompute, stall, phase] = key;
    FlopmeterProfileIdle span{};
    span.count = sum.count;
    span.seconds = sum.seconds;
    span.phase = phase;
    span.recompute = recompute ? 1 : 0;
    span.stall = stall ? 1 : 0;
    receiver->idle(receiver->context, &span);
  }
  send_spans(*receiver, spans, profile->begin);
  receiver->totals(receiver->context,
                   profile->wall,
                   profile->on_device.load(std::memory_order_relaxed) ? 1 : 0,
                   profile->device ? 1 : 0,
                   spans.omitted());
  return 1;
}

namespace {

/// Calls `use` with the profile in device times that runs.
template <class Use>
void with_device_profile(Use use) {
  const auto profile = std::atomic_load(&current_profile);
  if (profile && profile->running && profile->device) use(*profile->device);
}

}  // namespace

void exclude_from_profile() {
  with_device_profile([](DeviceProfile& device) { device.record(DeviceProfile::own_work); });
}

void begin_profiled_wait() {
  with_device_profile([](DeviceProfile& device) { device.begin_wait(); });
}

void end_profiled_wait() {
  with_device_profile([](DeviceProfile& device) { device.end_wait(); });
}

}  // namespace flopmeter::torch_adapter
