// SPDX-License-Identifier: Apache-2.0
//
// The monitor must not hurt the run: no allocation or wait on the training thread, forks, stalled
// and failing outputs, kills.  FLOPMETER_LONG=1 runs the long forms.
#include "allocation_watch.h"
#include "support.h"

#include <flopmeter/monitor/monitor.h>
#include <flopmeter/sources/process_memory.h>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

namespace flopmeter {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

bool long_form() {
  return std::getenv("FLOPMETER_LONG") != nullptr;
}

/// The thread sanitizer ends a forked child that starts a thread.
// Sanitizers keep locks of their own, which a fork leaves held where the writer was just allocating
// (seen in the address sanitizer), and they need descriptors of their own.  The optimised build
// runs these tests.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool children_may_start_threads = false;
#else
constexpr bool children_may_start_threads = true;
#endif

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void six_phases(Monitor& monitor) {
  monitor.begin_step({.samples = 8, .tokens = 8192});
  for (const Phase phase : {Phase::data, Phase::forward, Phase::backward}) {
    monitor.begin_phase(phase);
    monitor.end_phase(phase);
  }
  monitor.end_step();
}

Options everything(const TemporaryDirectory& directory) {
  Options options = quiet(directory);
  options.tensorboard = true;
  options.csv = true;
  options.breakdown = true;
  options.sinks = {"training_log"};
  return options;
}

TEST(Reliability, a_step_allocates_nothing_on_its_thread) {
  TemporaryDirectory directory;
  auto monitor = Monitor::start(everything(directory));
  ASSERT_TRUE(monitor);
  watch_allocations(true);
  for (int i = 0; i < 10'000; ++i) six_phases(*monitor);  // the ring is full for most of it
  EXPECT_EQ(watch_allocations(false), 0U);
  watch_allocations(true);
  operator delete(operator new(1));
  EXPECT_EQ(watch_allocations(false), 1U);  // the watch itself works
  EXPECT_GT(monitor->status().dropped, 0U);
}

TEST(Reliability, forked_children_do_nothing_and_end) {
  TemporaryDirectory directory;
  auto monitor = Monitor::start(everything(directory));
  ASSERT_TRUE(monitor);
  std::atomic<bool> stop{false};
  std::thread busy{[&] {
    while (!stop) six_phases(*monitor);
  }};
  const int forks = long_form() ? 500 : 60;
  for (int i = 0; i < forks; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(5);
      for (int k = 0; k < 10; ++k) monitor->begin_step({.step = -999});
      monitor->end_step();
      monitor->finish();
      const bool off = !monitor->enabled() && !monitor->status().disabled.empty();
      {
        Monitor gone = *std::move(monitor);
      }  // its destructor must not wait for a thread that is not here
      _exit(off ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  busy.join();
  monitor->finish();
  for (const Json& record : read_records(directory)) ASSERT_NE(record["step"], -999);
}

TEST(Reliability, a_forked_child_may_start_a_monitor_of_its_own) {
  if (!children_may_start_threads) GTEST_SKIP() << "not under a sanitizer";
  TemporaryDirectory directory;
  TemporaryDirectory own;
  auto monitor = Monitor::start(quiet(directory));
  const pid_t child = fork();
  if (child == 0) {
    alarm(5);
    auto mine = Monitor::start(quiet(own));
    for (int i = 0; i < 5; ++i) six_phases(*mine);
    mine->finish();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_records(own).size(), 5U);
}

/// Takes records as fast as a stalled device does.
class StalledSink final : public Sink {
 public:
  Result<void> write(const StepRecord& /*record*/) override {
    std::this_thread::sleep_for(10s);
    return {};
  }
};

TEST(Reliability, a_write_that_never_returns_delays_nobody) {
  TemporaryDirectory directory;
  Connections connections;
  connections.sinks.push_back(std::make_unique<StalledSink>());
  connections.warn = [](const std::string&) {};
  auto monitor = Monitor::start(quiet(directory), std::move(connections));
  for (int i = 0; i < 5000; ++i) six_phases(*monitor);
  EXPECT_GT(monitor->status().dropped, 1000U);
  const auto start = std::chrono::steady_clock::now();
  monitor->finish();
  EXPECT_LT(seconds_since(start), 2.0);
}

TEST(Reliability, a_fifo_without_a_reader_is_counted_and_passed_by) {
  TemporaryDirectory directory;
  const std::string fifo = directory.path() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  Options options = quiet(directory);
  options.sinks = {"jsonl:" + fifo};
  Connections connections;
  std::vector<std::string> said;
  connections.warn = [&](const std::string& text) { said.push_back(text); };
  auto monitor = Monitor::start(options, std::move(connections));
  for (int i = 0; i < 100; ++i) six_phases(*monitor);
  const auto start = std::chrono::steady_clock::now();
  monitor->finish();
  EXPECT_LT(seconds_since(start), 2.0);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], HasSubstr("fifo"));
  EXPECT_EQ(read_records(directory).size(), 100U);
}

TEST(Reliability, a_fifo_whose_reader_sleeps_and_dies_ends_nothing) {
  TemporaryDirectory directory;
  const std::string fifo = directory.path() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK);  // never reads
  Options options = quiet(directory);
  options.sinks = {"jsonl:" + fifo};
  Connections connections;
  connections.warn = [](const std::string&) {};
  auto monitor = Monitor::start(options, std::move(connections));
  for (int i = 0; i < 300; ++i) six_phases(*monitor);
  std::this_thread::sleep_for(50ms);
  close(reader);
  for (int i = 0; i < 300; ++i) six_phases(*monitor);
  const auto start = std::chrono::steady_clock::now();
  monitor->finish();
  EXPECT_LT(seconds_since(start), 2.0);
  EXPECT_EQ(read_records(directory).size(), 600U);
}

/// A sink that throws what it likes.
class ThrowingSink final : public Sink {
 public:
  Result<void> write(const StepRecord& record) override {
    if (record.step % 2 == 0) throw 42;  // NOLINT(hicpp-exception-baseclass)
    throw std::runtime_error{"no"};
  }
};

TEST(Reliability, what_a_sink_throws_is_counted_and_said_once) {
  TemporaryDirectory directory;
  std::vector<std::string> said;
  Connections connections;
  connections.sinks.push_back(std::make_unique<ThrowingSink>());
  connections.warn = [&](const std::string& text) { said.push_back(text); };
  auto monitor = Monitor::start(quiet(directory), std::move(connections));
  for (int i = 0; i < 50; ++i) six_phases(*monitor);
  monitor->finish();
  EXPECT_EQ(said.size(), 1U);
  EXPECT_EQ(monitor->status().failed_writes, 50U);
  EXPECT_EQ(read_records(directory).size(), 50U);
  EXPECT_EQ(read_records(directory).back()["failed_writes"], 49);
}

TEST(Reliability, a_file_size_limit_ends_nothing) {
  if (!children_may_start_threads) GTEST_SKIP() << "not under a sanitizer";
  TemporaryDirectory directory;
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const rlimit small{20'000, 20'000};
    setrlimit(RLIMIT_FSIZE, &small);  // writes beyond it would send SIGXFSZ
    Connections connections;
    connections.warn = [](const std::string&) {};
    auto monitor = Monitor::start(everything(directory), std::move(connections));
    if (!monitor) _exit(2);
    for (int i = 0; i < 500; ++i) six_phases(*monitor);
    monitor->finish();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_GT(read_records(directory).size(), 5U);  // and every line of it parses
  EXPECT_LE(
      std::filesystem::file_size(directory.path() + "/" + directory.names("records_").front()),
      20'000U);
}

TEST(Reliability, no_descriptors_left_ends_nothing) {
  if (!children_may_start_threads) GTEST_SKIP() << "not under a sanitizer";
  TemporaryDirectory directory;
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const rlimit few{4, 4};
    setrlimit(RLIMIT_NOFILE, &few);
    Connections connections;
    connections.warn = [](const std::string&) {};
    auto monitor = Monitor::start(everything(directory), std::move(connections));
    if (!monitor) _exit(2);
    for (int i = 0; i < 100; ++i) six_phases(*monitor);
    monitor->finish();
    _exit(monitor->status().failed_writes > 0 ? 0 : 3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Reliability, a_killed_run_stays_readable_and_loses_less_than_a_second) {
  if (!children_may_start_threads) GTEST_SKIP() << "not under a sanitizer";
  const int kills = long_form() ? 200 : 12;
  std::mt19937 random{11};  // NOLINT(cert-msc32-c): the same moments every time
  for (int i = 0; i < kills; ++i) {
    TemporaryDirectory directory;
    const pid_t child = fork();
    if (child == 0) {
      auto monitor = Monitor::start(everything(directory));
      while (true) {
        six_phases(*monitor);
        usleep(1000);
      }
    }
    while (read_records(directory).size() < 100) {
      ASSERT_EQ(waitpid(child, nullptr, WNOHANG), 0) << "the run ended by itself";
      usleep(2000);
    }
    usleep(static_cast<useconds_t>(random() % 50'000));
    kill(child, SIGKILL);
    const double killed = static_cast<double>(unix_nanoseconds()) / 1e9;
    waitpid(child, nullptr, 0);
    const auto records = read_records(directory);  // parses all but a torn last line
    ASSERT_GE(records.size(), 100U);
    EXPECT_LT(killed - records.back()["time_unix"].get<double>(), 1.0);
    for (const auto& name : directory.names("perf_summary_")) {
      if (!name.ends_with(".tmp")) {
        EXPECT_FALSE(
            Json::parse(read_file(directory.path() + "/" + name), nullptr, false).is_discarded());
      }
    }
    const std::string log = read_file(directory.path() + "/training_log.json");
    if (!log.empty()) {
      EXPECT_FALSE(Json::parse(log, nullptr, false).is_discarded());
    }
  }
}

TEST(Reliability, the_thread_is_one_named_and_deaf_to_signals) {
  const auto threads = [] {
    std::vector<std::string> status;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      if (read_file(task.path() / "comm") == "flopmeter\n")
        status.push_back(read_file(task.path() / "status"));
    }
    return status;
  };
  const std::size_t before = threads().size();
  TemporaryDirectory directory;
  auto monitor = Monitor::start(quiet(directory));
  six_phases(*monitor);
  while (monitor->status().written == 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(threads().size(), before + 1);
  EXPECT_THAT(threads().back(),
              HasSubstr("SigBlk:\tfffffffe7ffbfeff"));  // all but those that cannot be blocked
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGINT), 0);
}

TEST(Reliability, memory_stays_flat) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep memory of their own";
#endif
  TemporaryDirectory directory;
  Options options = everything(directory);
  options.disk_limit_mib = 4;
  auto monitor = Monitor::start(options);
  const long steps = long_form() ? 10'000'000 : 300'000;
  const auto run = [&](long count) {
    for (long i = 0; i < count; ++i) {
      six_phases(*monitor);
      if (i % 1000 == 0) std::this_thread::sleep_for(1ms);
    }
    std::this_thread::sleep_for(100ms);
    return *read_process_memory().rss;
  };
  const std::int64_t before = run(steps / 3);
  const std::int64_t after = run(steps - steps / 3);
  EXPECT_LT(after - before, 1 << 20);
  monitor->finish();
  for (const auto& name : directory.names("records_")) {
    EXPECT_LE(std::filesystem::file_size(directory.path() + "/" + name), 4U << 20U) << name;
  }
}

TEST(Reliability, old_stamps_go_but_never_a_live_one) {
  TemporaryDirectory directory;
  for (int i = 0; i < 6; ++i) {
    const std::string stamp = "2020010" + std::to_string(i + 1) + "_000000";
    for (const std::string& name : {"perf_metrics_" + stamp + ".log",
                                    "perf_summary_" + stamp + ".json",
                                    "records_" + stamp + ".rank0.jsonl"}) {
      std::ofstream{directory.path() + "/" + name} << "x";
    }
  }
  std::ofstream{directory.path() + "/perf_metrics_notes.log"} << "mine";
  Options options = quiet(directory);
  options.max_log_files = 3;
  auto live = Monitor::start(options);
  six_phases(*live);
  while (live->status().written == 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(directory.names("records_").size(), 3U);
  EXPECT_EQ(directory.names("perf_metrics_2020").size(), 2U);
  options.max_log_files = 1;
  {
    auto other = Monitor::start(options);
    six_phases(*other);
  }
  live->finish();
  EXPECT_EQ(directory.names("records_").size(), 2U);  // the live one was spared
  EXPECT_EQ(directory.names("perf_metrics_notes").size(), 1U);
}

TEST(Reliability, two_runs_in_one_directory_never_share_a_line) {
  TemporaryDirectory directory;
  {
    auto one = Monitor::start(quiet(directory));
    auto two = Monitor::start(quiet(directory));
    std::thread first{[&] {
      for (int i = 0; i < 200; ++i) six_phases(*one);
    }};
    for (int i = 0; i < 200; ++i) six_phases(*two);
    first.join();
  }
  EXPECT_EQ(directory.names("records_").size(), 2U);
  EXPECT_EQ(read_records(directory, 0).size(), 200U);
  EXPECT_EQ(read_records(directory, 1).size(), 200U);
  EXPECT_EQ(directory.names("perf_summary_").size(), 2U);
}

TEST(Reliability, nothing_of_the_environment_or_command_line_is_recorded) {
  setenv("FLOPMETER_TEST_SECRET", "hunter2-secret", 1);
  TemporaryDirectory directory;
  Options options = everything(directory);
  options.metrics_token = "hunter2-secret";
  {
    auto monitor = Monitor::start(options);
    for (int i = 0; i < 20; ++i) six_phases(*monitor);
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path())) {
    if (entry.is_regular_file()) {
      EXPECT_THAT(read_file(entry.path()), testing::Not(HasSubstr("hunter2"))) << entry.path();
    }
  }
}

}  // namespace
}  // namespace flopmeter
