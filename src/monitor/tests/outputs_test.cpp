// SPDX-License-Identifier: Apache-2.0
//
// Stalled, failing, and killed outputs: the run continues, and its files stay readable.
#include "reliability.h"

#include <flopmeter/core/step_totals.h>
#include <flopmeter/runstore/run_directory.h>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <random>
#include <thread>

namespace flopmeter {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

Connections without_warnings() {
  Connections connections;
  connections.warn = [](const std::string&) {};
  return connections;
}

/// Blocks as a stalled device does.
class StalledSink final : public Sink {
 public:
  Result<void> write(const StepRecord& /*record*/) override {
    std::this_thread::sleep_for(10s);
    return {};
  }
};

TEST(Outputs, a_write_that_never_returns_delays_nothing) {
  TemporaryDirectory directory;
  Connections connections = without_warnings();
  connections.sinks.push_back(std::make_unique<StalledSink>());
  auto monitor = Monitor::start(without_console(directory), std::move(connections));
  for (int i = 0; i < 5000; ++i) six_phases(*monitor);
  EXPECT_GT(monitor->status().dropped, 1000U);
  const auto start = std::chrono::steady_clock::now();
  monitor->finish();
  EXPECT_LT(seconds_since(start), 2.0);
}

TEST(Outputs, a_fifo_without_a_reader_is_counted_and_skipped) {
  TemporaryDirectory directory;
  const std::string fifo = directory.path() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  Options options = without_console(directory);
  options.sinks = {"jsonl:" + fifo};
  Connections connections;
  std::vector<std::string> logged;
  connections.warn = [&](const std::string& text) { logged.push_back(text); };
  auto monitor = Monitor::start(options, std::move(connections));
  for (int i = 0; i < 100; ++i) six_phases(*monitor);
  wait_until_written(*monitor, 100);
  const auto start = std::chrono::steady_clock::now();
  monitor->finish();
  EXPECT_LT(seconds_since(start), 2.0);
  ASSERT_EQ(logged.size(), 1U);
  EXPECT_THAT(logged[0], HasSubstr("fifo"));
  EXPECT_EQ(read_records(directory).size(), 100U);
}

TEST(Outputs, a_fifo_whose_reader_sleeps_and_dies_ends_nothing) {
  TemporaryDirectory directory;
  const std::string fifo = directory.path() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK);  // never reads
  Options options = without_console(directory);
  options.sinks = {"jsonl:" + fifo};
  auto monitor = Monitor::start(options, without_warnings());
  for (int i = 0; i < 300; ++i) six_phases(*monitor);
  std::this_thread::sleep_for(50ms);
  close(reader);
  for (int i = 0; i < 300; ++i) six_phases(*monitor);
  wait_until_written(*monitor, 600);
  const auto start = std::chrono::steady_clock::now();
  monitor->finish();
  EXPECT_LT(seconds_since(start), 2.0);
  EXPECT_EQ(read_records(directory).size(), 600U);
}

/// A sink that throws arbitrary objects.
class ThrowingSink final : public Sink {
 public:
  Result<void> write(const StepRecord& record) override {
    if (record.step % 2 == 0) throw 42;  // NOLINT(hicpp-exception-baseclass)
    throw std::runtime_error{"no"};
  }
};

TEST(Outputs, an_exception_of_a_sink_is_counted_and_logged_once) {
  TemporaryDirectory directory;
  std::vector<std::string> logged;
  Connections connections;
  connections.sinks.push_back(std::make_unique<ThrowingSink>());
  connections.warn = [&](const std::string& text) { logged.push_back(text); };
  auto monitor = Monitor::start(without_console(directory), std::move(connections));
  for (int i = 0; i < 50; ++i) six_phases(*monitor);
  wait_until_written(*monitor, 50);
  monitor->finish();
  EXPECT_THAT(logged, testing::Contains(HasSubstr("the output is retried")).Times(1));
  EXPECT_EQ(monitor->status().failed_writes, 50U);
  EXPECT_EQ(read_records(directory).size(), 50U);
  EXPECT_EQ(read_records(directory).back()["failed_writes"], 49);
}

/// Blocks the first write until it is released; counts writes and steps.
class GatedSink final : public Sink {
 public:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_open = false;
    int writes = 0;
    StepTotals totals;
  };
  explicit GatedSink(std::shared_ptr<State> state) : state_(std::move(state)) {}

  Result<void> write(const StepRecord& record) override {
    std::unique_lock lock{state_->mutex};
    state_->changed.wait(lock, [this] { return state_->is_open; });
    ++state_->writes;
    state_->totals.add(record);
    return {};
  }

 private:
  std::shared_ptr<State> state_;
};

TEST(Outputs, steps_that_end_faster_than_records_are_written_share_records) {
  TemporaryDirectory directory;
  const auto state = std::make_shared<GatedSink::State>();
  Connections connections = without_warnings();
  connections.sinks.push_back(std::make_unique<GatedSink>(state));
  auto monitor = Monitor::start(without_console(directory), std::move(connections));
  constexpr int steps = 1900;  // fewer than the ring holds
  for (int i = 0; i < steps; ++i) six_phases(*monitor);
  {
    const std::lock_guard lock{state->mutex};
    state->is_open = true;
    state->changed.notify_all();
  }
  wait_until_written(*monitor, steps);
  monitor->finish();
  EXPECT_EQ(monitor->status().dropped, 0U);
  EXPECT_EQ(monitor->status().written, steps);
  EXPECT_LT(state->writes, steps / 2);
  EXPECT_EQ(state->totals.steps, steps);
  EXPECT_EQ(state->totals.tokens.amount, 8192 * steps);
  int stored = 0;
  for (const Json& record : read_records(directory)) {
    stored += record["steps"].get<int>();
    EXPECT_EQ(record["tokens"], 8192 * record["steps"].get<int>());
  }
  EXPECT_EQ(stored, steps);
}

/// Takes some 3,000 records per second.
class SlowSink final : public Sink {
 public:
  Result<void> write(const StepRecord& /*record*/) override {
    std::this_thread::sleep_for(300us);
    return {};
  }
};

TEST(Outputs, dropped_records_are_logged_once) {
  TemporaryDirectory directory;
  Connections connections;
  connections.sinks.push_back(std::make_unique<SlowSink>());
  std::mutex mutex;
  std::vector<std::string> logged;
  const auto lines = [&] {
    const std::lock_guard lock{mutex};
    return logged;
  };
  connections.warn = [&](const std::string& text) {
    const std::lock_guard lock{mutex};
    logged.push_back(text);
  };
  auto monitor = Monitor::start(without_console(directory), std::move(connections));
  for (int i = 0; i < 10'000; ++i) six_phases(*monitor);
  for (int i = 0; i < 200 && lines().empty(); ++i) std::this_thread::sleep_for(100ms);
  EXPECT_THAT(lines(), testing::ElementsAre(HasSubstr("records were dropped")));
  monitor->finish();
}

TEST(Outputs, a_deleted_run_directory_is_logged_and_created_again) {
  TemporaryDirectory directory;
  Connections connections;
  std::vector<std::string> logged;
  connections.warn = [&](const std::string& text) { logged.push_back(text); };
  Options options = without_console(directory);
  options.directory = directory.path() + "/run";
  auto monitor = Monitor::start(options, std::move(connections));
  for (int i = 0; i < 20; ++i) six_phases(*monitor);
  std::this_thread::sleep_for(300ms);
  std::filesystem::remove_all(options.directory);
  for (int second = 0; second < 50 && !std::filesystem::exists(options.directory + "/run.json");
       ++second) {
    six_phases(*monitor);
    std::this_thread::sleep_for(100ms);
  }
  for (int i = 0; i < 30; ++i) six_phases(*monitor);
  monitor->finish();
  EXPECT_THAT(logged, testing::ElementsAre(HasSubstr("was deleted during the run")));
  const auto run = open_run(options.directory);
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_GE(read_window(*run, 0, 1000).size(), 30U);
  EXPECT_FALSE((*run).metadata.run_id.empty());
}

TEST(Outputs, a_file_size_limit_ends_nothing) {
  if (!children_may_start_threads) GTEST_SKIP() << "not under a sanitizer";
  TemporaryDirectory directory;
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const rlimit small{20'000, 20'000};
    setrlimit(RLIMIT_FSIZE, &small);  // writes beyond it would send SIGXFSZ
    auto monitor = Monitor::start(everything(directory), without_warnings());
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

TEST(Outputs, no_descriptors_left_ends_nothing) {
  if (!children_may_start_threads) GTEST_SKIP() << "not under a sanitizer";
  TemporaryDirectory directory;
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const rlimit few{4, 4};
    setrlimit(RLIMIT_NOFILE, &few);
    auto monitor = Monitor::start(everything(directory), without_warnings());
    if (!monitor) _exit(2);
    for (int i = 0; i < 100; ++i) six_phases(*monitor);
    monitor->finish();
    _exit(monitor->status().failed_writes > 0 ? 0 : 3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Outputs, a_killed_run_stays_readable_and_loses_less_than_a_second) {
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

}  // namespace
}  // namespace flopmeter
