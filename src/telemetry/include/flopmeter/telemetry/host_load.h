// SPDX-License-Identifier: Apache-2.0
//
// HostLoad: how long other load kept a thread from running, from the counters of the kernel.
#pragma once

#include <flopmeter/core/units.h>

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace flopmeter {

/// Times since the previous call; empty if the kernel does not report them.
struct HostWait {
  std::optional<Seconds> run_queue;  ///< the thread was ready, but the processors were busy
  std::optional<Seconds> throttled;  ///< the cgroup had used its processor quota
  std::optional<Seconds> stolen;     ///< the hypervisor ran another machine; mean of the processors
};

/// Not thread-safe.
class HostLoad {
 public:
  /// `root` replaces "/" in tests.
  explicit HostLoad(pid_t thread, std::string root = "");

  /// Counters of the machine are read at most ten times per second; in between they are 0.
  HostWait since_last(std::int64_t now_ns);

 private:
  struct Counters {
    std::optional<double> run_queue, throttled, stolen;  ///< seconds so far
  };
  [[nodiscard]] std::optional<double> run_queue() const;
  [[nodiscard]] std::optional<double> throttled() const;
  [[nodiscard]] std::optional<double> stolen() const;

  std::string schedstat_;
  std::string cgroup_;  ///< cpu.stat of the process' cgroup; empty: none
  std::string stat_;
  Counters last_;
  std::int64_t read_ns_ = 0;
};

}  // namespace flopmeter
