// SPDX-License-Identifier: Apache-2.0
//
// Cost of a step on the training thread: begin, six phase marks, end, with all file outputs on.
// Prints percentiles; with the argument "negative" it prints nothing, for callgrind, which counts
// one_step(), and strace, for which getppid() marks the start and end of the steps.
#include "reliability.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <thread>

using namespace flopmeter;

[[gnu::noinline]] static void one_step(Monitor& monitor) {
  six_phases(monitor);
}

int main(int argc, char** argv) {
  const bool quiet_run = argc > 1 && std::strcmp(argv[1], "negative") == 0;
  TemporaryDirectory directory;
  auto monitor = Monitor::start(everything(directory));
  if (!monitor) return 1;
  const int steps = quiet_run ? 2000 : 20'000;
  std::vector<std::int64_t> times;
  times.reserve(static_cast<std::size_t>(steps));
  getppid();
  for (int i = 0; i < steps; ++i) {
    const std::int64_t start = monotonic_nanoseconds();
    one_step(*monitor);
    times.push_back(monotonic_nanoseconds() - start);
    if (!quiet_run && i % 20 == 0) std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  getppid();
  monitor->finish();
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
  };
  std::printf(
      "begin + 6 phase marks + end: p50 %lld ns, p99 %lld ns, p99.9 %lld ns; dropped %llu of %d\n",
      static_cast<long long>(at(0.5)),
      static_cast<long long>(at(0.99)),
      static_cast<long long>(at(0.999)),
      static_cast<unsigned long long>(monitor->status().dropped),
      steps);
  return 0;
}
