// SPDX-License-Identifier: Apache-2.0
//
// A training loop of MPI ranks with one slow rank; rank 0 reads the run and checks it. Repeats with
// pairs that share samples and rank 0 measuring for all, and with a rank 0 that never answers.
#include <flopmeter/analysis/merge.h>
#include <flopmeter/monitor/monitor.h>
#include <flopmeter/mpi/mpi_exchange.h>

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

namespace flopmeter {
namespace {

using namespace std::chrono_literals;

constexpr int steps = 12;
constexpr int slow_rank = 1;
int failures = 0;

void expect(bool right, const char* what) {
  if (right) return;
  ++failures;
  std::fprintf(stderr, "four_ranks: %s is wrong\n", what);
}

/// The same folder on all ranks.
std::string shared_directory() {
  std::string name = (std::filesystem::temp_directory_path() / "flopmeter_XXXXXX").string();
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0 && mkdtemp(name.data()) == nullptr) std::abort();
  MPI_Bcast(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
  return name;
}

void train(const std::string& directory, int tensor_parallel, Exchange* exchange) {
  World world = mpi_world();
  world.tensor_parallel = tensor_parallel;
  Options options;
  options.directory = directory;
  options.console = false;
  options.log_interval = 3;
  options.broadcast = exchange != nullptr;
  options.broadcast_deadline = 20'000;
  Connections connections;
  connections.world = world;
  connections.exchange = exchange;
  connections.peaks.set(Dtype::fp32, {1e9});
  auto monitor = Monitor::start(options, std::move(connections));
  if (!monitor) std::abort();
  double value = world.rank;
  for (int i = 0; i < steps; ++i) {
    StepInput input{.samples = 2, .tokens = 64};
    if (exchange == nullptr || world.rank == 0) {
      input.flops = Flops{1'000'000 + world.rank};
      input.flops_dtype = Dtype::fp32;
    }
    auto step = (*monitor).step(input);
    std::this_thread::sleep_for(world.rank == slow_rank ? 40ms : 10ms);
    double sum = 0;
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  (*monitor).finish();
  MPI_Barrier(MPI_COMM_WORLD);
}

MergedRun merged(const std::string& directory) {
  const auto run = open_run(directory);
  if (!run) std::abort();
  return merge_ranks(*run);
}

bool near(std::optional<double> value, double expected) {
  return value && std::abs(*value / expected - 1) < 1e-9;
}

void check_world(const MergedRun& run, int data_parallel) {
  expect(run.world_size == 4 && run.missing.empty(), "the world");
  const double flops = steps * (4e6 + 6);
  const std::int64_t tokens = std::int64_t{steps} * data_parallel * 64;
  expect(run.totals.model_flops == Flops{static_cast<WideInt>(flops)}, "the sum of model FLOPs");
  expect(run.totals.tokens == tokens, "the sum of tokens");
  expect(near(run.world.mfu(), flops / (4 * 1e9 * run.world.seconds)), "MFU");
  expect(near(run.world.tokens_per_second(), static_cast<double>(tokens) / run.world.seconds),
         "tokens per second");
  for (const RankSummary& rank : run.ranks) {
    expect((rank.score.verdict == Verdict::slow) == (rank.rank == slow_rank), "a verdict");
    expect(rank.totals.phase(Phase::communication).has_value(), "the time in collectives");
  }
}

void check_broadcast(const std::string& directory) {
  const auto run = open_run(directory);
  if (!run) std::abort();
  for (int rank = 1; rank < 4; ++rank) {
    const auto records = read_window(*run, rank);
    expect(records.size() == steps, "the number of records");
    for (const StepRecord& record : records) {
      expect(record.model_flops == Flops{1'000'000}, "a broadcast value");
      expect(record.flops_source == FlopsProvenance::broadcast, "its source");
    }
  }
}

/// Rank 0 never answers; the others wait for the deadline once, outside the steps.
void train_without_rank_0(const std::string& directory, Exchange& exchange) {
  const World world = mpi_world();
  if (world.rank == 0) return;
  Options options;
  options.directory = directory;
  options.console = false;
  options.log_interval = 1;
  options.broadcast = true;
  options.broadcast_deadline = 1'000;
  Connections connections;
  connections.world = world;
  connections.exchange = &exchange;
  auto monitor = Monitor::start(options, std::move(connections));
  if (!monitor) std::abort();
  std::chrono::steady_clock::duration longest{};
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    {
      auto step = (*monitor).step({.samples = 2, .tokens = 64});
      std::this_thread::sleep_for(150ms);
    }
    longest = std::max(longest, std::chrono::steady_clock::now() - start);
  }
  (*monitor).finish();
  const auto took = std::chrono::steady_clock::now() - begin;
  expect(longest < 1'000ms, "the step time with a dead rank");
  expect(took < steps * 150ms + 2 * 1'000ms, "the run time with a dead rank");
  const auto notes = (*monitor).status().notes;
  expect(notes.size() == 1 && notes.front().find("within 1000 ms") != std::string::npos,
         "the note about a dead rank");
}

}  // namespace
}  // namespace flopmeter

int main(int argc, char** argv) {
  using namespace flopmeter;  // NOLINT(google-build-using-namespace)
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  const std::string first = shared_directory();
  const std::string second = shared_directory();
  const std::string third = shared_directory();
  const std::string in_pairs = shared_directory();
  train(first, 1, nullptr);
  train(in_pairs, 2, nullptr);
  auto exchange = make_mpi_exchange();
  expect(exchange.has_value(), "the exchange");
  if (exchange) train(second, 1, (*exchange).get());
  auto unanswered = make_mpi_exchange();
  if (unanswered) train_without_rank_0(third, **unanswered);
  MPI_Barrier(MPI_COMM_WORLD);
  if (mpi_world().rank == 0) {
    check_world(merged(first), 4);
    check_world(merged(in_pairs), 2);
    check_broadcast(second);
    std::filesystem::remove_all(first);
    std::filesystem::remove_all(second);
    std::filesystem::remove_all(third);
    std::filesystem::remove_all(in_pairs);
  }
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
