// SPDX-License-Identifier: Apache-2.0
//
// Common code of the reliability tests: a loop with all file outputs on. FLOPMETER_LONG=1 runs the
// long variants.
#pragma once

#include "support.h"

#include <chrono>
#include <cstdlib>
#include <thread>

namespace flopmeter {

inline bool long_form() {
  return std::getenv("FLOPMETER_LONG") != nullptr;
}

// The thread sanitizer ends a forked child that starts a thread. Sanitizers have internal locks,
// which stay locked after a fork if the writer was just allocating (seen in the address sanitizer),
// and they need file descriptors. The optimized build runs these tests.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool children_may_start_threads = false;
#else
constexpr bool children_may_start_threads = true;
#endif

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// finish() does not wait for a writer that a busy machine has left behind.
inline void wait_until_written(const Monitor& monitor, std::uint64_t steps) {
  const auto start = std::chrono::steady_clock::now();
  while (monitor.status().written < steps && seconds_since(start) < 60)
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
}

inline void six_phases(Monitor& monitor) {
  monitor.begin_step({.samples = 8, .tokens = 8192});
  for (const Phase phase : {Phase::data, Phase::forward, Phase::backward}) {
    monitor.begin_phase(phase);
    monitor.end_phase(phase);
  }
  monitor.end_step();
}

inline Options everything(const TemporaryDirectory& directory) {
  Options options = without_console(directory);
  options.tensorboard = true;
  options.csv = true;
  options.breakdown = true;
  options.sinks = {"training_log"};
  return options;
}

}  // namespace flopmeter
