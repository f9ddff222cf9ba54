// SPDX-License-Identifier: Apache-2.0
#include "record_writer.h"

#include "run_setup.h"

#include <flopmeter/core/text.h>
#include <flopmeter/runstore/run_layout.h>
#include <flopmeter/runstore/run_metadata_json.h>
#include <flopmeter/runstore/run_start.h>
#include <flopmeter/sinks/sinks.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>

namespace flopmeter {
namespace {

constexpr std::int64_t drain_interval_ns = 100'000'000;  // several records at once are cheaper
constexpr std::int64_t flush_interval_ns = 1'000'000'000;

/// Work that fails, such as an allocation, is skipped this time.
template <class Work>
void if_possible(Work&& work) noexcept {
  try {
    work();
  } catch (...) {
  }
}

}  // namespace

RecordWriter::RecordWriter(const Options& options,
                           Connections& connections,
                           StepRecorder& recorder,
                           Ring<Slot>& ring,
                           Note note,
                           Publish publish)
    : options_(options),
      connections_(connections),
      recorder_(recorder),
      ring_(ring),
      note_(std::move(note)),
      publish_(std::move(publish)),
      utilization_(connections.peaks),
      resolver_(options, connections, recorder.plan()),
      broadcast_(options.broadcast ? connections.exchange : nullptr,
                 options.log_interval,
                 std::chrono::milliseconds{options.broadcast_deadline}),
      hardware_(resolver_, recorder.plan(), note_),
      diagnosis_(connections.peaks),
      sinks_(note_),
      sampler_(options.memory, connections.device_memory) {}

Result<void> RecordWriter::open(std::string_view convention) {
  const double now = static_cast<double>(connections_.clock.unix_time()) / 1e9;
  run_ = describe_run(options_, connections_, convention, now);
  const StartedRun started = start_run(run_, now, options_.max_log_files);
  has_metadata_ = started.problem.empty();
  if (!has_metadata_) note_(started.problem + "; training continues");
  statistics_.emplace(now, connections_.clock.monotonic(), started.earlier);
  profiles_.emplace(RunLayout{run_}.op_profile(), run_.disk_limit_bytes);
  for (const std::string& specification : sink_specifications(options_, run_)) {
    auto sink = make_sink(specification, run_);
    if (!sink) return sink.error();
    sinks_.add(specification.substr(0, specification.find(':')), *std::move(sink));
  }
  for (auto& sink : connections_.sinks) sinks_.add("user", std::move(sink));
  connections_.sinks.clear();
  return {};
}

void RecordWriter::open_hardware() {
  sampler_.start(connections_.clock.monotonic());
  hardware_.open(options_, connections_);
  connections_.known_work = nullptr;
}

void RecordWriter::store_profile() {
  auto profile = recorder_.take_profile();
  if (!profile) return;
  if (!profiles_->add(*profile)) sinks_.count_failure();
  diagnosis_.add(std::move(*profile));
}

void RecordWriter::warn_about_missing_peak(const StepRecord& record) {
  if (!record.model_flops || record.mfu || std::exchange(warned_peak_, true)) return;
  std::array<WideInt, dtype_count> flops{};
  for (std::size_t i = 0; i < dtype_count; ++i) flops[i] = record.model_flops_by_dtype[i];
  const auto missing = utilization_.missing_peak(flops);
  if (!missing) return;
  const std::string& device = connections_.peaks.device;
  note_("no MFU: the " + std::string{to_string(*missing)} + " peak of " +
        (device.empty() ? "this device" : device) +
        " is unknown; set it (--peak, peak_tflops) or measure it with flopmeter peak");
}

void RecordWriter::handle(Slot& slot, std::int64_t now_ns) {
  StepRecord& record = slot.record;
  hardware_.fill(slot);
  resolver_.resolve(slot);
  if (const auto trouble = broadcast_.share(record)) note_(*trouble);
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
  publish_(record);
  written_.fetch_add(1, std::memory_order_relaxed);
}

/// Sinks create their files again; this restores run.json.
void RecordWriter::restore_directory() {
  if (!has_metadata_ || access(RunLayout{run_}.metadata().c_str(), F_OK) == 0) return;
  has_metadata_ = false;
  std::filesystem::create_directories(run_.directory);
  if (!write_run_metadata(run_.directory, run_.metadata, true)) return;
  has_metadata_ = true;
  note_("the run directory " + run_.directory +
        " was deleted during the run; it is created again without the records so far");
}

void RecordWriter::warn_about_dropped_records() {
  const auto dropped = recorder_.dropped();
  if (dropped == 0 || std::exchange(warned_dropped_, true)) return;
  const double seconds = static_cast<double>(monotonic_nanoseconds() - started_ns_) / 1e9;
  note_(std::to_string(dropped) + " of " + std::to_string(recorder_.steps()) +
        " records were dropped: " + si(static_cast<double>(recorder_.steps()) / seconds) +
        " steps per second end faster than records are written; MFU is of the others");
}

void RecordWriter::drain(std::int64_t now_ns) {
  for (Slot* slot = ring_.front(); slot != nullptr && !abandoned_; slot = ring_.front()) {
    try {
      handle(*slot, now_ns);
    } catch (...) {  // an allocation failed or a callback threw: only this record is lost
      sinks_.count_failure();
    }
    ring_.pop();
  }
  if (!abandoned_) sinks_.write_merged(now_ns);
  if (!abandoned_) if_possible([&] { warn_about_dropped_records(); });
}

void RecordWriter::work(std::int64_t now_ns, bool now_wanted) noexcept {
  if (started_ns_ == 0) {
    started_ns_ = now_ns;
    cpu_ns_ = thread_cpu_nanoseconds();
  }
  if_possible([&] { hardware_.poll(now_ns, ring_.size() != 0); });
  if (is_busy() || now_wanted || now_ns - drained_ns_ >= drain_interval_ns) {
    drained_ns_ = now_ns;
    drain(now_ns);
  }
  if_possible([&] { sampler_.sample_data_wait(); });
  if_possible([&] { sampler_.sample_interpreter_lock(now_ns); });
  if_possible([&] { store_profile(); });
  if_possible([&] {
    if (const auto findings = diagnosis_.evaluate(now_ns)) sinks_.found(*findings, now_ns);
  });
  if (now_ns - flushed_ns_ < flush_interval_ns) return;
  flushed_ns_ = now_ns;
  if_possible([&] { restore_directory(); });
  sinks_.flush(now_ns);
}

void RecordWriter::finish(std::vector<Finding> findings) noexcept {
  if_possible([&] { hardware_.poll(monotonic_nanoseconds(), true); });
  drain(monotonic_nanoseconds());
  if (abandoned_) return;
  if_possible([&] { store_profile(); });
  if_possible([&] {
    std::vector<Finding> found = diagnosis_.findings();
    findings.insert(findings.end(),
                    std::make_move_iterator(found.begin()),
                    std::make_move_iterator(found.end()));
  });
  sinks_.finish(findings);
  failed_writes_.store(sinks_.failures(), std::memory_order_relaxed);
}

}  // namespace flopmeter
