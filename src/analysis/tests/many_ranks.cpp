// SPDX-License-Identifier: Apache-2.0
//
// Merges a simulated run of 10,000 ranks and 100 steps and fails if it takes 10 s of processor
// time, more than 256 MB, or the wrong ranks are named.
#include "../../../tests/support/random_records.h"
#include "simulated_run.h"

#include <flopmeter/analysis/merge.h>

#include <sys/resource.h>

#include <cstdio>
#include <ctime>

int main() {
  using namespace flopmeter;  // NOLINT(google-build-using-namespace)
  const TemporaryDirectory directory;
  const SimulatedRun sim{.ranks = 10'000, .missing = {17, 4242, 9998}, .slow_rank = 1234};
  const WideInt total = write_run(sim, directory.path());

  const std::clock_t begin = std::clock();
  const auto run = open_run(directory.path());
  if (!run) return 1;
  const MergedRun merged = merge_ranks(*run);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);

  std::vector<int> slow;
  for (const RankSummary& rank : merged.ranks) {
    if (rank.score.verdict == Verdict::slow) slow.push_back(rank.rank);
  }
  const bool right = merged.missing == std::vector{17, 4242, 9998} && slow == std::vector{1234} &&
                     merged.totals.reported_model_flops == Flops{total};
  std::printf("%zu records in %.2f s of processor time, at most %ld MB; the ranks named are %s\n",
              merged.ranks.size() * 100 - 300,
              seconds,
              usage.ru_maxrss / 1024,
              right ? "right" : "wrong");
  return right && seconds < 10 && usage.ru_maxrss < 256 * 1024 ? 0 : 1;
}
