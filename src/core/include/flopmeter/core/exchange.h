// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <stop_token>

namespace flopmeter {

/// A broadcast from rank 0 with a deadline: the interface for process groups and MPI. Off by
/// default; without it, flopmeter adds no communication between ranks.
class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  Exchange(Exchange&&) = delete;
  Exchange& operator=(Exchange&&) = delete;
  virtual ~Exchange() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int world_size() const = 0;
  /// Fills `bytes` on all ranks with rank 0's; false if the deadline passed, a rank is gone, or
  /// stop was requested.
  virtual bool broadcast(std::span<std::byte> bytes,
                         std::chrono::milliseconds deadline,
                         const std::stop_token& stop) = 0;
};

}  // namespace flopmeter
