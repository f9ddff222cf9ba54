// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include "signals_blocked.h"

#include <flopmeter/core/static_text.h>
#include <flopmeter/core/text.h>
#include <flopmeter/sinks/sinks.h>
#include <flopmeter/telemetry/loader_activity.h>

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
constexpr auto poll_interval = 20ms;  // training wakes nobody: that would be a system call
constexpr auto busy_interval = 2ms;
constexpr std::int64_t drain_interval_ns = 100'000'000;  // several records at once cost less
constexpr auto finish_deadline = 1500ms;
constexpr std::int64_t device_deadline_ns = 1'000'000'000;  // part of finish_deadline
constexpr std::int64_t flush_interval_ns = 1'000'000'000;
constexpr int niceness = 10;  // the writing thread waits for a pause of the training

void say_on_stderr(const std::string& text) {
  const std::string line = "flopmeter: " + printable(text) + "\n";
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, line.data(), line.size());
}

/// What fails for want of memory is left out this time.
template <class Work>
void if_possible(Work&& work) noexcept {
  try {
    work();
  } catch (...) {
  }
}

/// Options say more than the launcher.
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
      builder_(connections_.peaks),
      resolver_(options_, connections_.estimator, connections_.world, recorder_.plan()),
      broadcast_(options_.broadcast ? connections_.exchange : nullptr,
                 options_.log_interval,
                 std::chrono::milliseconds{options_.broadcast_deadline}),
      hardware_(resolver_, recorder_.plan(), [this](const std::string& text) { note(text); }),
      diagnosis_(connections_.peaks),
      sinks_([this](const std::string& text) { note(text); }) {}

/// Whoever listens must not end the run, and neither must memory that is not there.
void Monitor::Session::note(std::string_view text) noexcept {
  try {
    const std::string said{text};
    {
      const std::lock_guard lock{mutex_};
      notes_.push_back(said);
    }
    connections_.warn ? connections_.warn(said) : say_on_stderr(said);
  } catch (...) {
  }
}

void Monitor::Session::prepare_directory() {
  const double now = static_cast<double>(connections_.clock.unix_time()) / 1e9;
  run_.directory = options_.directory;
  run_.model = options_.model;
  run_.convention = convention_;
  run_.peaks = connections_.peaks;
  run_.rank = connections_.world.rank;
  run_.world_size = connections_.world.size;
  run_.data_parallel = data_parallel_of(connections_.world);
  run_.equal_ranks = connections_.world.pipeline_parallel == 1 &&
                     connections_.world.expert_parallel == 1 && !connections_.replicated;
  if (const World& world = connections_.world; world.pipeline_parallel > 1)
    run_.role = role_of(world.rank, world.pipeline_parallel, world.pipeline_stride);
  run_.local_rank = connections_.world.local_rank;
  run_.host = connections_.world.host;
  run_.log_interval = options_.log_interval;
  run_.breakdown = options_.breakdown;
  run_.memory = options_.memory;
  run_.zero_unmeasured = options_.zero_unmeasured;
  run_.disk_limit_bytes = std::int64_t{options_.disk_limit_mib} << 20U;
  const auto stored = stored_run_id(run_.directory);
  run_.run_id = !options_.run_id.empty() ? options_.run_id : stored ? *stored : new_run_id();
  statistics_.emplace(options_.log_interval, now, earlier_run(run_.directory, run_.rank));
  std::error_code ignored;  // write_run_json() tells it better
  std::filesystem::create_directories(run_.directory, ignored);
  // Room for the stamp of this start, which is not there yet.
  if (run_.rank == 0 && options_.max_log_files > 0)
    retain_stamps(run_.directory, options_.max_log_files - 1);
  run_.stamp = claim_stamp(run_.directory, run_.rank, now);
  const auto written = write_run_json(options_, connections_, run_, run_.rank != 0 || !stored);
  if (!written) note(written.error().message + "; training goes on");
  if (const auto winner = stored_run_id(run_.directory); winner && options_.run_id.empty())
    run_.run_id = *winner;
}

Result<void> Monitor::Session::make_sinks() {
  std::vector<std::string> wanted = {"jsonl"};
  if (run_.rank == 0) {
    for (const std::string_view name : {"perf_metrics", "perf_summary", "perf_realtime"})
      wanted.emplace_back(name);
    if (options_.console) wanted.emplace_back("console");
    if (options_.csv) wanted.emplace_back("csv");
    if (options_.tensorboard) {
      wanted.push_back("tensorboard:" + (options_.tensorboard_dir.empty()
                                             ? run_.directory + "/tensorboard"
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
  for (auto& sink : connections_.sinks) sinks_.add("given", std::move(sink));
  connections_.sinks.clear();
  return {};
}

Result<void> Monitor::Session::start() {
  const SignalsBlocked blocked;  // the thread inherits it
  tzset();
  watch_forks();
  generation_ = fork_generation();
  prepare_directory();
  if (const auto made = make_sinks(); !made) return made;
  for (const std::string& warning : options_.warnings) note(warning);
  tracker_.calibrate();
  training_thread_ = gettid();
  hardware_.open(options_, connections_);
  connections_.known_work = nullptr;
  try {
    thread_ = std::thread{[self = shared_from_this()] { self->run(); }};
  } catch (const std::system_error& error) {
    no_thread_ = true;
    note(std::string{"no thread can be started, so this run is not watched: "} + error.what());
    return {};
  }
  alive_.store(true, std::memory_order_release);
  return {};
}

void Monitor::Session::measure_memory(StepRecord& record, std::int64_t now_ns) {
  if (!options_.memory) return;
  if (memory_read_ns_ == 0 || now_ns - memory_read_ns_ >= drain_interval_ns) {
    memory_ = read_process_memory();
    memory_read_ns_ = now_ns;
  }
  record.memory_rss_bytes = memory_.rss;
  record.memory_rss_peak_bytes = memory_.rss_peak;
  if (!connections_.device_memory) return;
  const DeviceMemory device = connections_.device_memory();
  record.memory_device_bytes = device.current;
  record.memory_device_peak_bytes = device.peak;
  record.memory_device_reserved_bytes = device.reserved;
}

/// While the training thread waits for data: does anything prepare it, or do all wait for I/O?
void Monitor::Session::look_at_loader() {
  if (current_phase().load(std::memory_order_relaxed) != Phase::data) return;
  const auto busy = thread_or_children_run(training_thread_);
  if (!busy) return;
  ++data_wait_samples_;
  if (*busy) ++data_wait_busy_samples_;
}

/// Stores the profile that has ended, if one has; not beyond the disk limit.
void Monitor::Session::take_profile() {
  const auto profile = recorder_.take_profile();
  if (!profile) return;
  std::string line;
  JsonWriter json{line};
  write_json(json, *profile);
  line.push_back('\n');
  diagnosis_.add(std::move(*profile));
  profile_bytes_ += static_cast<std::int64_t>(line.size());
  if (profile_bytes_ > run_.disk_limit_bytes) return;
  if (!append_line(run_.directory + "/op_profile_" + run_.stamp + ".rank" +
                       std::to_string(run_.rank) + ".jsonl",
                   line))
    sinks_.count_failure();
}

void Monitor::Session::say_findings(std::int64_t now_ns) {
  if (const auto findings = diagnosis_.look(now_ns)) sinks_.found(*findings, now_ns);
}

void Monitor::Session::handle(Slot& slot, std::int64_t now_ns) {
  StepRecord& record = slot.record;
  if (data_wait_samples_ != 0) {
    record.data_wait_samples = std::exchange(data_wait_samples_, 0);
    record.data_wait_busy_samples = std::exchange(data_wait_busy_samples_, 0);
  }
  batch_ = slot.shape.known() ? to_text(slot.shape.view(record.micro_batches)) : std::string{};
  record.batch = batch_;
  hardware_.fill(slot);
  resolver_.resolve(slot);
  if (const auto trouble = broadcast_.share(record)) note(*trouble);
  measure_memory(record, now_ns);
  builder_.finish(record);
  if (record.model_flops && !record.mfu && !warned_peak_) {
    warned_peak_ = true;
    std::array<WideInt, dtype_count> flops{};
    for (std::size_t i = 0; i < dtype_count; ++i) flops[i] = record.model_flops_by_dtype[i];
    if (const auto missing = builder_.missing_peak(flops)) {
      note("no MFU: the peak of " +
           (run_.peaks.device.empty() ? "this device" : run_.peaks.device) + " in " +
           std::string{to_string(*missing)} +
           " is not known; give it with --peak TFLOPS or measure it with flopmeter peak");
    }
  }
  statistics_->add(record);
  diagnosis_.add(record);
  record.failed_writes = sinks_.failures();
  const std::int64_t cpu = thread_cpu_nanoseconds();
  record.writer_seconds =
      Seconds{static_cast<double>(std::max<std::int64_t>(cpu - cpu_ns_, 0)) / 1e9};
  cpu_ns_ = cpu;
  sinks_.write(record, now_ns);
  failed_writes_.store(sinks_.failures(), std::memory_order_relaxed);
  {
    const std::lock_guard lock{mutex_};
    for (const auto& subscription : subscriptions_) subscription->push(record);
  }
  written_.fetch_add(1, std::memory_order_relaxed);
}

void Monitor::Session::drain(std::int64_t now_ns) {
  for (Slot* slot = ring_.front(); slot != nullptr && !left_alone_; slot = ring_.front()) {
    try {
      handle(*slot, now_ns);
    } catch (...) {  // an allocation that failed, a callback that threw: this record is lost, the
                     // next may do
      sinks_.count_failure();
    }
    ring_.pop();
  }
}

void Monitor::Session::run() noexcept {
  pthread_setname_np(pthread_self(), "flopmeter");
  static_cast<void>(setpriority(PRIO_PROCESS, 0, niceness));  // of this thread alone
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
    if_possible([&] { look_at_loader(); });
    if_possible([&] { take_profile(); });
    if_possible([&] { say_findings(now); });
    if (now - flushed_ns >= flush_interval_ns) {
      flushed_ns = now;
      sinks_.flush(now);
    }
    std::unique_lock lock{mutex_};
    wake_.wait_for(lock, busy ? busy_interval : poll_interval, [this] { return is_called(); });
    stop = stopping_;
  }
  if_possible([&] { hardware_.poll(monotonic_nanoseconds(), true); });
  drain(monotonic_nanoseconds());
  std::vector<Finding> findings;
  if_possible([&] { take_profile(); });
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
  if (connections_.source != nullptr) {
    connections_.source->enable(false);
    try {
      static_cast<void>(connections_.source->end_profile());  // of a step that was left open
    } catch (...) {
    }
  }
  const std::int64_t begin = monotonic_nanoseconds();
  recorder_.finish_device(begin + device_deadline_ns);
  const auto deadline = finish_deadline - std::chrono::nanoseconds{monotonic_nanoseconds() - begin};
  bool stopped = false;
  {
    std::unique_lock lock{mutex_};
    stopping_ = true;
    wake_.notify_all();
    const auto is_stopped = [this] { return stopped_; };
    stopped = done_.wait_for(lock, deadline / 2, is_stopped);
    if (!stopped) {
      broadcast_.stop();  // no longer than that for a late rank
      stopped = done_.wait_for(lock, deadline / 2, is_stopped);
    }
  }
  if (stopped) {
    thread_.join();
  } else {
    left_alone_ = true;  // the caller may now free what it connected
    thread_.detach();    // it holds this session; the process need not wait for its write
    note("an output did not take its data in time; the last records may be missing");
  }
}

MonitorStatus Monitor::Session::status() const {
  MonitorStatus status;
  status.directory = run_.directory;
  status.steps = recorder_.steps();
  status.written = written_.load(std::memory_order_relaxed);
  status.dropped = recorder_.dropped();
  status.misuse = tracker_.misuse();
  status.events = tracker_.events();
  status.failed_writes = failed_writes_.load(std::memory_order_relaxed);
  status.measurements = recorder_.plan().measurements();
  if (is_child()) {
    status.disabled = "this is a forked child; the parent's monitor is not its own";
    return status;  // the lock may be held for ever here
  }
  const std::lock_guard lock{mutex_};
  status.notes = notes_;
  if (!options_.enabled) {
    status.disabled = "switched off by its options";
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
