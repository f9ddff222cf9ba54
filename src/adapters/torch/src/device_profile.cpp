// SPDX-License-Identifier: Apache-2.0
#include "device_profile.h"

#include "device_clock.h"
#include "host.h"

#include <algorithm>
#include <chrono>

namespace flopmeter::torch_adapter {
namespace {

/// Back-to-back events at the end, from which the time of one event follows.
constexpr int calibration_events = 5;
/// The device needs less time to see new work: a longer lag shows that work was queued.
constexpr std::int64_t longest_launch_ns = 50'000;
/// Shorter times between operators are those of marks.
constexpr std::int64_t notable_ns = 5'000;
/// Events that one call reads, which takes some tens of microseconds.
constexpr std::size_t most_reads = 100;
constexpr int most_anchor_tries = 3;

std::int64_t host_clock() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

DeviceProfile::~DeviceProfile() {
  for (const Event& each : events_) {
    if (each.event != nullptr) release_device_event(each.event);
  }
}

int DeviceProfile::add(RowKey key, const RowSum& cost) {
  const std::lock_guard lock(mutex_);
  calls_.emplace_back(std::move(key), cost);
  return static_cast<int>(calls_.size()) - 1;
}

void DeviceProfile::begin_wait() {
  const std::lock_guard lock(mutex_);
  record_locked(no_operator);
  if (wait_ != no_operator) return;
  const std::uint8_t phase = __atomic_load_n(host->phase, __ATOMIC_RELAXED);
  wait_ = static_cast<int>(calls_.size());
  calls_.push_back(
      {{"wait for a collective", FLOPMETER_KIND_COMMUNICATION, "", 0, false, false, false, phase},
       {.calls = 1}});
}

void DeviceProfile::end_wait() {
  const std::lock_guard lock(mutex_);
  if (wait_ == no_operator) return;
  record_locked(no_operator);
  wait_ = no_operator;
}

void DeviceProfile::record(int call) {
  const std::lock_guard lock(mutex_);
  record_locked(call);
}

void DeviceProfile::record_locked(int call) {
  if (call == no_operator) call = wait_;
  overflow_ = overflow_ || events_.size() == most_events;
  if (overflow_) return;
  Event event{.host_ns = host_clock(),
              .call = call,
              .phase = __atomic_load_n(host->phase, __ATOMIC_RELAXED)};
  // None while a graph is captured: its kernels do not run.
  if (record_device_event(&event.event, &event.stream) != 1) return;
  last_[event.stream] = events_.size();
  events_.push_back(event);
}

void DeviceProfile::calibrate() {
  for (int i = 0; i < calibration_events; ++i) record(own_work);
}

bool DeviceProfile::read() {
  const std::lock_guard lock(mutex_);
  if (overflow_) return true;
  if (!unread_) {
    const bool reached = std::all_of(last_.begin(), last_.end(), [&](const auto& each) {
      return is_device_event_reached(events_[each.second].event);
    });
    if (!reached) return false;
    unread_ = events_.size();
  }
  const std::size_t left = *unread_ - std::min(*unread_, most_reads);
  while (*unread_ != left) {
    if (!read_last()) return anchor_tries_ == most_anchor_tries;
  }
  return left == 0;
}

/// Events of a stream are read from the last one back: an anchor states when by the host's clock
/// the device reached that one.
bool DeviceProfile::read_last() {
  Event& event = events_[*unread_ - 1];
  const auto at = later_.find(event.stream);
  std::int64_t reached = 0;
  if (at == later_.end()) {
    const auto anchored = host_time_of(event.event);
    if (!anchored) {
      ++anchor_tries_;
      return false;
    }
    reached = *anchored;
  } else {
    Event& next = events_[at->second.first];
    next.device_ns = device_time_between(event.event, next.event);
    reached = at->second.second - next.device_ns;
  }
  event.lag_ns = reached - event.host_ns;
  later_[event.stream] = {--*unread_, reached};
  return true;
}

std::int64_t DeviceProfile::event_cost(std::int64_t least_lag_ns) const {
  std::int64_t least = INT64_MAX;
  for (std::size_t i = events_.size() - std::min<std::size_t>(events_.size(), calibration_events);
       i + 1 < events_.size();
       ++i) {
    const Event& event = events_[i];
    const Event& next = events_[i + 1];
    const bool queued = event.lag_ns - least_lag_ns > next.host_ns - event.host_ns;
    if (event.stream == next.stream && queued) least = std::min(least, next.device_ns);
  }
  return least == INT64_MAX ? 0 : std::max<std::int64_t>(least, 0);
}

std::int64_t DeviceProfile::main_stream() const {
  std::map<std::int64_t, int> counts;
  for (const Event& each : events_) ++counts[each.stream];
  return std::max_element(counts.begin(),
                          counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

/// Work on other streams, such as collectives of FSDP and copies ahead, runs at the same time: what
/// the main stream waits for it is time outside operators.
std::map<RowKey, RowSum> DeviceProfile::rows(OpSpans& spans) {
  const std::lock_guard lock(mutex_);
  std::map<RowKey, RowSum> rows;
  if (overflow_ || events_.empty() || unread_ != 0) return rows;
  std::int64_t least_lag = longest_launch_ns;
  for (const Event& each : events_) least_lag = std::min(least_lag, each.lag_ns);
  const std::int64_t cost = event_cost(least_lag);
  const std::int64_t main = main_stream();
  std::map<std::uint8_t, double> outside;  // by phase
  const Event* before = nullptr;
  for (const Event& event : events_) {
    if (event.stream != main) continue;
    const Event* last = std::exchange(before, &event);
    if (last == nullptr || event.call == own_work) continue;
    // The device runs dry only if the host was slower than the work that was queued.
    const std::int64_t dry = (event.host_ns - last->host_ns) - (last->lag_ns - least_lag);
    const std::int64_t work = event.device_ns - cost - std::max<std::int64_t>(dry, 0);
    if (work <= 0) continue;
    const double time = static_cast<double>(work) / 1e9;
    if (event.call != no_operator) {
      auto& [key, sum] = calls_[static_cast<std::size_t>(event.call)];
      sum.self += time;
      spans.add({.row = &key,
                 .begin_ns = event.host_ns + event.lag_ns - cost - work,
                 .length_ns = work,
                 .phase = event.phase});
    } else if (work > notable_ns) {
      outside[event.phase] += time;
    }
  }
  for (const auto& [key, sum] : calls_) {
    const bool is_communication = std::get<1>(key) == FLOPMETER_KIND_COMMUNICATION;
    if (!is_communication || sum.self > 0) rows[key].add(sum);
  }
  for (const auto& [phase, time] : outside) {
    rows[{"kernels outside operators", FLOPMETER_KIND_UNKNOWN, "", 0, false, false, false, phase}]
        .add({.calls = 1, .self = time});
  }
  return rows;
}

}  // namespace flopmeter::torch_adapter
