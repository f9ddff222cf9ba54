// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include "signals_blocked.h"

#include <flopmeter/core/static_text.h>
#include <flopmeter/core/text.h>
#include <flopmeter/runstore/run_layout.h>
#include <flopmeter/runstore/run_metadata_json.h>
#include <flopmeter/runstore/run_start.h>
#include <flopmeter/sinks/sinks.h>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <system_error>

namespace flopmeter {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t ring_slots = 2048;
constexpr auto poll_interval = 20ms;  // the training thread wakes no thread: that is a system call
constexpr auto busy_interval = 2ms;
constexpr std::int64_t drain_interval_ns = 100'000'000;  // several records at once are cheaper
constexpr auto finish_deadline = 1500ms;
constexpr auto last_write = 200ms;
constexpr std::int64_t device_deadline_ns = 1'000'000'000;  // part of finish_deadline
constexpr std::int64_t flush_interval_ns = 1'000'000'000;
constexpr int niceness = 10;  // training goes first

void print_to_stderr(const std::string& text) {
  const std::string line = "flopmeter: " + printable(text) + "\n";
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, line.data(), line.size());
}

/// Work that fails, such as an allocation, is skipped this time.
template <class Work>
void if_possible(Work&& work) noexcept {
  try {
    work();
  } catch (...) {
  }
}

/// Options override the launcher.
Connections with_layout(const Options& options, Connections connections) {
  World& world = connections.world;
  const auto take = [](int& size, int option) {
    if (option > 0) size = option;
  };
  if (options.broadcast && connections.exchange != nullptr && connections.exchange->rank() != 0) {
    connections.source = nullptr;  // rank 0 measures
    connections.estimator = nullptr;
  }
  take(world.data_parallel, options.data_parallel);
  take(world.tensor_parallel, options.tensor_parallel);
  take(world.pipeline_parallel, options.pipeline_parallel);
  take(world.context_parallel, options.context_parallel);
  take(world.expert_parallel, options.expert_parallel);
  return connections;
}

}  // namespace

Monitor::Session::Session(Options options, Connections connections)
    : options_(std::move(options)),
      connections_(with_layout(options_, std::move(connections))),
      convention_(static_text(connections_.convention)),
      ring_(ring_slots),
      recorder_(options_, connections_, convention_, ring_),
      tracker_(connections_.policy, connections_.reports_forward, connections_.clock, recorder_),
      generation_(fork_generation()),
      utilization_(connections_.peaks),
      resolver_(options_, connections_, recorder_.plan()),
      broadcast_(options_.broadcast ? connections_.exchange : nullptr,
                 options_.log_interval,
                 std::chrono::milliseconds{options_.broadcast_deadline}),
      hardware_(resolver_, recorder_.plan(), [this](const std::string& text) { note(text); }),
      diagnosis_(connections_.peaks),
      sinks_([this](const std::string& text) { note(text); }),
      sampler_(options_.memory, connections_.device_memory) {}

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

void Monitor::Session::prepare_run() {
  const auto set = [](int size) { return size > 0 ? std::optional{size} : std::nullopt; };
  const double now = static_cast<double>(connections_.clock.unix_time()) / 1e9;
  const World& world = connections_.world;
  run_.metadata = {.run_id = options_.run_id,
                   .stamp = {},
                   .model = options_.model,
                   .convention = std::string{convention_},
                   .mode = std::string{to_string(options_.mode)},
                   .peaks = connections_.peaks,
                   .world_size = world.size,
                   .data_parallel = data_parallel_of(world),
                   .tensor_parallel = set(world.tensor_parallel),
                   .pipeline_parallel = set(world.pipeline_parallel),
                   .pipeline_stride = set(world.pipeline_stride),
                   .context_parallel = set(world.context_parallel),
                   .expert_parallel = set(world.expert_parallel),
                   .devices_per_rank = connections_.devices,
                   .processors = set(static_cast<int>(std::thread::hardware_concurrency())),
                   .log_interval = options_.log_interval,
                   .total_steps = set(options_.total_steps),
                   .model_source = connections_.model_source};
  run_.directory = choose_run_directory(options_.directory, world.size, environ, now);
  run_.rank = world.rank;
  run_.local_rank = world.local_rank;
  run_.host = world.host;
  run_.equal_ranks =
      world.pipeline_parallel == 1 && world.expert_parallel == 1 && !connections_.replicated;
  if (world.pipeline_parallel > 1) run_.role = run_.metadata.role(world.rank);
  run_.breakdown = options_.breakdown;
  run_.first_row = options_.first_row;
  run_.memory = options_.memory;
  run_.zero_unmeasured = options_.zero_unmeasured;
  run_.disk_limit_bytes = std::int64_t{options_.disk_limit_mib} << 20U;
  const StartedRun started = start_run(run_, now, options_.max_log_files);
  has_metadata_ = started.problem.empty();
  if (!has_metadata_) note(started.problem + "; training continues");
  statistics_.emplace(now, connections_.clock.monotonic(), started.earlier);
  profiles_.emplace(RunLayout{run_}.op_profile(), run_.disk_limit_bytes);
}

Result<void> Monitor::Session::make_sinks() {
  std::vector<std::string> wanted = {"jsonl"};
  if (run_.rank == 0) {
    if (options_.log_format != "json")
      wanted.insert(wanted.end(), {"perf_metrics", "perf_realtime"});
    if (options_.log_format != "text") wanted.emplace_back("perf_summary");
    if (options_.console) wanted.emplace_back("console");
    if (options_.csv) wanted.emplace_back("csv");
    if (options_.tensorboard) {
      wanted.push_back("tensorboard:" + (options_.tensorboard_dir.empty()
                                             ? RunLayout{run_}.tensorboard()
                                             : options_.tensorboard_dir + "/flopmeter"));
    }
  }
  if (!options_.prometheus_file.empty()) wanted.push_back("prometheus:" + options_.prometheus_file);
  if (!options_.metrics_address.empty()) {
    wanted.push_back("metrics_endpoint:" + options_.metrics_address +
                     (options_.metrics_token.empty() ? "" : "#" + options_.metrics_token));
  }
  wanted.insert(wanted.end(), options_.sinks.begin(), options_.sinks.end());
  for (const std::string& specification : wanted) {
    auto sink = make_sink(specification, run_);
    if (!sink) return sink.error();
    sinks_.add(specification.substr(0, specification.find(':')), *std::move(sink));
  }
  for (auto& sink : connections_.sinks) sinks_.add("user", std::move(sink));
  connections_.sinks.clear();
  return {};
}

Result<void> Monitor::Session::start() {
  const SignalsBlocked blocked;  // the thread inherits it
  tzset();
  watch_forks();
  generation_ = fork_generation();
  prepare_run();
  if (const auto made = make_sinks(); !made) return made;
  for (const std::string& warning : options_.warnings) note(warning);
  tracker_.calibrate();
  recorder_.enable_device();
  sampler_.start(connections_.clock.monotonic());
  hardware_.open(options_, connections_);
  connections_.known_work = nullptr;
  try {
    thread_ = std::thread{[self = shared_from_this()]() mutable {
      self->run();
      // The process may be exiting: destructors of outputs could use static objects that are gone.
      static constinit std::atomic<std::shared_ptr<Session>*> kept{nullptr};
      if (self->left_alone_) kept = new std::shared_ptr<Session>{std::move(self)};
    }};
  } catch (const std::system_error& error) {
    no_thread_ = true;
    note(std::string{"cannot start a thread, so this run is not monitored: "} + error.what());
    return {};
  }
  alive_.store(true, std::memory_order_release);
  return {};
}

void Monitor::Session::store_profile() {
  auto profile = recorder_.take_profile();
  if (!profile) return;
  if (!profiles_->add(*profile)) sinks_.count_failure();
  diagnosis_.add(std::move(*profile));
}

void Monitor::Session::report_findings(std::int64_t now_ns) {
  if (const auto findings = diagnosis_.evaluate(now_ns)) sinks_.found(*findings, now_ns);
}

void Monitor::Session::warn_about_missing_peak(const StepRecord& record) {
  if (!record.model_flops || record.mfu || std::exchange(warned_peak_, true)) return;
  std::array<WideInt, dtype_count> flops{};
  for (std::size_t i = 0; i < dtype_count; ++i) flops[i] = record.model_flops_by_dtype[i];
  const auto missing = utilization_.missing_peak(flops);
  if (!missing) return;
  const std::string& device = connections_.peaks.device;
  note("no MFU: the " + std::string{to_string(*missing)} + " peak of " +
       (device.empty() ? "this device" : device) +
       " is unknown; set it (--peak, peak_tflops) or measure it with flopmeter peak");
}

void Monitor::Session::handle(Slot& slot, std::int64_t now_ns) {
  StepRecord& record = slot.record;
  hardware_.fill(slot);
  resolver_.resolve(slot);
  if (const auto trouble = broadcast_.share(record)) note(*trouble);
  sampler_.fill(record, now_ns);
  utilization_.finish(record);
  warn_about_missing_peak(record);
  statistics_->add(record, slot.end_ns);
  diagnosis_.add(record);
  record.failed_writes = sinks_.failures();
  const std::int64_t cpu = thread_cpu_nanoseconds();
  record.writer_seconds =
      Seconds{static_cast<double>(std::max<std::int64_t>(cpu - cpu_ns_, 0)) / 1e9};
  cpu_ns_ = cpu;
  const bool has_backlog = ring_.size() > ring_.capacity() / (sinks_.is_merging() ? 8 : 2);
  sinks_.write(record, now_ns, has_backlog);
  failed_writes_.store(sinks_.failures(), std::memory_order_relaxed);
  {
    const std::lock_guard lock{mutex_};
    for (const auto& subscription : subscriptions_) subscription->push(record);
  }
  written_.fetch_add(1, std::memory_order_relaxed);
}

/// Sinks create their files again; run.json is the session's.
void Monitor::Session::restore_directory() {
  if (!has_metadata_ || access(RunLayout{run_}.metadata().c_str(), F_OK) == 0) return;
  has_metadata_ = false;
  std::filesystem::create_directories(run_.directory);
  if (!write_run_metadata(run_.directory, run_.metadata, true)) return;
  has_metadata_ = true;
  note("the run directory " + run_.directory +
       " was deleted during the run; it is created again without the records so far");
}

void Monitor::Session::warn_about_dropped_records() {
  const auto dropped = recorder_.dropped();
  if (dropped == 0 || std::exchange(warned_dropped_, true)) return;
  const double seconds = static_cast<double>(monotonic_nanoseconds() - started_ns_) / 1e9;
  note(std::to_string(dropped) + " of " + std::to_string(recorder_.steps()) +
       " records were dropped: " + si(static_cast<double>(recorder_.steps()) / seconds) +
       " steps per second end faster than records are written; MFU is of the others");
}

void Monitor::Session::drain(std::int64_t now_ns) {
  for (Slot* slot = ring_.front(); slot != nullptr && !left_alone_; slot = ring_.front()) {
    try {
      handle(*slot, now_ns);
    } catch (...) {  // an allocation failed or a callback threw: only this record is lost
      sinks_.count_failure();
    }
    ring_.pop();
  }
  if (!left_alone_) sinks_.write_merged(now_ns);
  if (!left_alone_) if_possible([&] { warn_about_dropped_records(); });
}

void Monitor::Session::run() noexcept {
  pthread_setname_np(pthread_self(), "flopmeter");
  static_cast<void>(setpriority(PRIO_PROCESS, 0, niceness));  // of this thread only
  started_ns_ = monotonic_nanoseconds();
  cpu_ns_ = thread_cpu_nanoseconds();
  std::int64_t flushed_ns = 0;
  bool stop = false;
  while (!stop) {
    const std::int64_t now = monotonic_nanoseconds();
    if_possible([&] { hardware_.poll(now, ring_.size() != 0); });
    const bool busy = ring_.size() > ring_.capacity() / 8;
    if (busy || subscribed_ || now - drained_ns_ >= drain_interval_ns) {
      drained_ns_ = now;
      drain(now);
    }
    if_possible([&] { sampler_.sample_data_wait(); });
    if_possible([&] { sampler_.sample_interpreter_lock(now); });
    if_possible([&] { store_profile(); });
    if_possible([&] { report_findings(now); });
    if (now - flushed_ns >= flush_interval_ns) {
      flushed_ns = now;
      if_possible([&] { restore_directory(); });
      sinks_.flush(now);
    }
    std::unique_lock lock{mutex_};
    wake_.wait_for(lock, busy ? busy_interval : poll_interval, [this] { return must_wake(); });
    stop = stopping_;
  }
  if_possible([&] { hardware_.poll(monotonic_nanoseconds(), true); });
  drain(monotonic_nanoseconds());
  if (left_alone_) {
    const std::lock_guard lock{mutex_};
    stopped_ = true;
    done_.notify_all();
    return;
  }
  std::vector<Finding> findings;
  if_possible([&] { store_profile(); });
  if_possible([&] { findings = diagnosis_.findings(); });
  if_possible([&] {
    const std::lock_guard lock{mutex_};
    findings.insert(findings.begin(),
                    std::make_move_iterator(findings_.begin()),
                    std::make_move_iterator(findings_.end()));
    findings_.clear();
  });
  sinks_.finish(findings);
  failed_writes_.store(sinks_.failures(), std::memory_order_relaxed);
  {
    const std::lock_guard lock{mutex_};
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
      broadcast_.stop();  // does not wait longer for a late rank
      stopped = done_.wait_for(lock, deadline / 2, is_stopped);
    }
    if (!stopped) {
      left_alone_ = true;  // no further record is written
      stopped = done_.wait_for(lock, last_write, is_stopped);
    }
  }
  if (left_alone_) note("an output timed out; the last records may be missing");
  if (stopped) {
    thread_.join();
  } else {
    thread_.detach();  // it holds this session; the process does not wait for its write
  }
}

MonitorStatus Monitor::Session::status() const {
  MonitorStatus status;
  status.directory = run_.directory;
  status.trace = RunLayout{run_}.trace();
  status.steps = recorder_.steps();
  status.written = written_.load(std::memory_order_relaxed);
  status.dropped = recorder_.dropped();
  status.misuse = tracker_.misuse();
  status.events = tracker_.events();
  status.failed_writes = failed_writes_.load(std::memory_order_relaxed);
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
