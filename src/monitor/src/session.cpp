// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include "run_setup.h"
#include "signals_blocked.h"

#include <flopmeter/core/files.h>
#include <flopmeter/core/static_text.h>
#include <flopmeter/core/text.h>
#include <flopmeter/runstore/run_layout.h>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <system_error>

namespace flopmeter {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t ring_slots = 2048;
constexpr auto poll_interval = 20ms;  // the training thread wakes no thread: that is a system call
constexpr auto busy_interval = 2ms;
constexpr auto finish_deadline = 1500ms;
constexpr auto last_write = 200ms;
constexpr std::int64_t device_deadline_ns = 1'000'000'000;  // part of finish_deadline
constexpr int niceness = 10;                                // training goes first

void print_to_stderr(const std::string& text) {
  if (!is_standard_stream(STDERR_FILENO)) return;
  const std::string line = "flopmeter: " + printable(text) + "\n";
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

Monitor::Session::Session(Options options, Connections connections)
    : options_(std::move(options)),
      connections_(with_options(options_, std::move(connections))),
      convention_(static_text(connections_.convention)),
      ring_(ring_slots),
      recorder_(options_, connections_, convention_, ring_),
      tracker_(connections_.policy, connections_.reports_forward, connections_.clock, recorder_),
      writer_(
          options_,
          connections_,
          recorder_,
          ring_,
          [this](const std::string& text) { note(text); },
          [this](const StepRecord& record) { publish(record); }),
      generation_(fork_generation()) {}

/// Neither a callback nor an allocation failure may end the run.
void Monitor::Session::note(std::string_view text) noexcept {
  try {
    const std::string message{text};
    {
      const std::lock_guard lock{mutex_};
      notes_.push_back(message);
    }
    connections_.warn ? connections_.warn(message) : print_to_stderr(message);
  } catch (...) {
  }
}

void Monitor::Session::publish(const StepRecord& record) {
  const std::lock_guard lock{mutex_};
  for (const auto& subscription : subscriptions_) subscription->push(record);
}

Result<void> Monitor::Session::start() {
  const SignalsBlocked blocked;  // the thread inherits it
  tzset();
  watch_forks();
  generation_ = fork_generation();
  if (const auto opened = writer_.open(convention_); !opened) return opened;
  for (const std::string& warning : options_.warnings) note(warning);
  tracker_.calibrate();
  recorder_.enable_device();
  writer_.open_hardware();
  try {
    thread_ = std::thread{[self = shared_from_this()]() mutable {
      self->run();
      // The process may be exiting: destructors of outputs could use static objects that are gone.
      static constinit std::atomic<std::shared_ptr<Session>*> kept{nullptr};
      if (self->writer_.is_abandoned()) kept = new std::shared_ptr<Session>{std::move(self)};
    }};
  } catch (const std::system_error& error) {
    no_thread_ = true;
    note(std::string{"cannot start a thread, so this run is not monitored: "} + error.what());
    return {};
  }
  alive_.store(true, std::memory_order_release);
  return {};
}

void Monitor::Session::run() noexcept {
  pthread_setname_np(pthread_self(), "flopmeter");
  static_cast<void>(setpriority(PRIO_PROCESS, 0, niceness));  // of this thread only
  bool stop = false;
  while (!stop) {
    const bool busy = writer_.is_busy();
    writer_.work(monotonic_nanoseconds(), subscribed_);
    std::unique_lock lock{mutex_};
    wake_.wait_for(lock, busy ? busy_interval : poll_interval, [this] { return must_wake(); });
    stop = stopping_;
  }
  std::vector<Finding> findings;
  {
    const std::lock_guard lock{mutex_};
    findings = std::exchange(findings_, {});
  }
  writer_.finish(std::move(findings));
  {
    const std::lock_guard lock{mutex_};
    if (!writer_.is_abandoned())
      for (const auto& subscription : subscriptions_) subscription->close();
    stopped_ = true;
  }
  done_.notify_all();
}

void Monitor::Session::finish() noexcept {
  if (is_child() || !alive_.exchange(false)) return;
  if (connections_.source != nullptr) connections_.source->enable(false);
  const std::int64_t begin = monotonic_nanoseconds();
  recorder_.finish_device(begin + device_deadline_ns);
  if (connections_.source != nullptr) {
    try {
      static_cast<void>(connections_.source->end_profile());  // of a step that is still open
    } catch (...) {
    }
  }
  const auto deadline = finish_deadline - std::chrono::nanoseconds{monotonic_nanoseconds() - begin};
  bool stopped = false;
  {
    std::unique_lock lock{mutex_};
    stopping_ = true;
    wake_.notify_all();
    const auto is_stopped = [this] { return stopped_; };
    stopped = done_.wait_for(lock, deadline / 2, is_stopped);
    if (!stopped) {
      writer_.stop_waiting();
      stopped = done_.wait_for(lock, deadline / 2, is_stopped);
    }
    if (!stopped) {
      writer_.abandon();
      stopped = done_.wait_for(lock, last_write, is_stopped);
    }
  }
  if (writer_.is_abandoned()) note("an output timed out; the last records may be missing");
  if (stopped) {
    thread_.join();
  } else {
    thread_.detach();  // it holds this session; the process does not wait for its write
  }
}

MonitorStatus Monitor::Session::status() const {
  MonitorStatus status;
  status.directory = writer_.run().directory;
  status.trace = RunLayout{writer_.run()}.trace();
  status.steps = recorder_.steps();
  status.written = writer_.written();
  status.dropped = recorder_.dropped();
  status.misuse = tracker_.misuse();
  status.events = tracker_.events();
  status.failed_writes = writer_.failed_writes();
  status.measurements = recorder_.plan().measurements();
  if (is_child()) {
    status.disabled = "this process is a forked child; only the parent is monitored";
    return status;  // the lock may never be released here
  }
  const std::lock_guard lock{mutex_};
  status.notes = notes_;
  if (!options_.enabled) {
    status.disabled = "disabled by its options";
  } else if (!alive_.load(std::memory_order_relaxed)) {
    status.disabled = no_thread_ ? "no thread could be started" : "finished";
  }
  return status;
}

std::shared_ptr<Subscription> Monitor::Session::subscribe(std::size_t capacity) {
  auto subscription = std::make_shared<Subscription>(capacity);
  if (!alive()) {
    subscription->close();
    return subscription;
  }
  const std::lock_guard lock{mutex_};
  subscriptions_.push_back(subscription);
  subscribed_ = true;
  return subscription;
}

void Monitor::Session::add_finding(Finding finding) {
  if (!alive()) return;
  const std::lock_guard lock{mutex_};
  findings_.push_back(std::move(finding));
}

}  // namespace flopmeter
