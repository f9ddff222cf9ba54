// SPDX-License-Identifier: Apache-2.0
//
// Runs in which the k-th system call or the k-th allocation fails, for each k. A separate program,
// because it interposes the C library.
#include "call_faults.h"
#include "support.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <mutex>

namespace flopmeter {
namespace {

Options everything(const TemporaryDirectory& directory) {
  Options options = without_console(directory);
  options.directory += "/deeper/run";
  options.tensorboard = true;
  options.csv = true;
  options.breakdown = true;
  options.log_interval = 5;
  options.prometheus_file = directory.path() + "/metrics.prom";
  options.metrics_address = "127.0.0.1:0";
  options.sinks = {"training_log"};
  return options;
}

void twenty_steps(Monitor& monitor) {
  for (int i = 0; i < 20; ++i) {
    monitor.begin_step({.samples = 8, .tokens = 8192});
    monitor.begin_phase(Phase::forward);
    monitor.end_phase(Phase::forward);
    monitor.end_step({.loss = 1.0});
  }
}

struct Sweep {
  const char* name;
  Fault fault;
  int code;                ///< 0 and not halved: allocations fail, not calls
  bool only_long = false;  ///< with FLOPMETER_LONG=1 only: similar to another
  [[nodiscard]] bool allocations() const { return code == 0 && fault != Fault::halved; }
};

/// One run; whether a call was made to fail in it.
bool run_with(long k, const Sweep& sweep) {
  TemporaryDirectory directory;
  const Options options = everything(directory);
  Connections connections;
  connections.warn = [](const std::string&) {};
  const auto start = std::chrono::steady_clock::now();
  sweep.allocations() ? fail_allocation(k, sweep.fault) : fail_call(k, sweep.fault, sweep.code);
  bool started = false;
  {
    auto monitor = Monitor::start(options, std::move(connections));
    started = monitor.has_value();
    if (started) {
      twenty_steps(*monitor);
      monitor->finish();
    }
  }
  const bool failed = stop_failing();
  EXPECT_TRUE(started || sweep.allocations()) << "call " << k;  // without memory there is an error
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds{4}) << "call " << k;
  // All lines are readable except an incomplete last one.
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path())) {
    const std::string path = entry.path();
    if (path.ends_with(".jsonl")) {
      EXPECT_NO_THROW(parse_lines(read_file(path))) << "call " << k;
    }
    if (path.ends_with(".json") && !read_file(path).empty()) {
      EXPECT_FALSE(Json::parse(read_file(path), nullptr, false).is_discarded())
          << path << ", call " << k;
    }
  }
  return failed;
}

/// The first test, because an earlier one could have created the static objects.
TEST(Statics, the_writing_thread_registers_no_destructors) {
  TemporaryDirectory directory;
  Options options = everything(directory);
  Connections connections;
  connections.warn = [](const std::string&) {};
  watch_late_statics(true);
  auto monitor = Monitor::start(options, std::move(connections));
  ASSERT_TRUE(monitor);
  twenty_steps(*monitor);
  monitor->finish();
  EXPECT_EQ(watch_late_statics(false), 0U);
}

TEST(Locks, a_step_takes_none) {
  TemporaryDirectory directory;
  auto monitor = Monitor::start(everything(directory));
  ASSERT_TRUE(monitor);
  count_locks(true);
  for (int i = 0; i < 100; ++i) twenty_steps(*monitor);
  EXPECT_EQ(count_locks(false), 0U);
  std::mutex mutex;
  count_locks(true);
  { const std::lock_guard lock{mutex}; }
  EXPECT_EQ(count_locks(false), 1U);  // the probe itself works
}

class Faults : public testing::TestWithParam<Sweep> {};

TEST_P(Faults, a_run_ends_well_whichever_call_fails) {
  const Sweep& sweep = GetParam();
  const bool every = std::getenv("FLOPMETER_LONG") != nullptr;
  if (sweep.only_long && !every) GTEST_SKIP() << "one of the long ones";
  const long stride = sweep.allocations() && !every ? 29 : 1;  // there are many allocations
  int untouched = 0;  // runs that ended before the call in question: there are no more calls
  long k = 1;
  for (; untouched < 3 && k < 20'000; k += stride) {
    untouched = run_with(k, sweep) ? 0 : untouched + 1;
    if (HasFailure()) break;
  }
  EXPECT_GT(k, 50) << "so few calls cannot have been all";
  EXPECT_EQ(untouched, 3) << "there are more calls than were tried";
  RecordProperty("calls", static_cast<int>(k));
}

INSTANTIATE_TEST_SUITE_P(All,
                         Faults,
                         testing::Values(Sweep{"io_error_once", Fault::once, EIO},
                                         Sweep{"no_descriptors_once", Fault::once, EMFILE, true},
                                         Sweep{"disk_full_from_then", Fault::from_then, ENOSPC},
                                         Sweep{
                                             "read_only_from_then", Fault::from_then, EROFS, true},
                                         Sweep{"quota_from_then", Fault::from_then, EDQUOT, true},
                                         Sweep{"half_a_write", Fault::halved, 0},
                                         Sweep{"no_memory_once", Fault::once, 0},
                                         Sweep{"no_memory_from_then", Fault::from_then, 0, true}),
                         [](const auto& param) { return std::string{param.param.name}; });

}  // namespace
}  // namespace flopmeter
