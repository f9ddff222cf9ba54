// SPDX-License-Identifier: Apache-2.0
//
// FlopCounter: the interface through which the adapter of a framework reports what ran.  Totals are
// cumulative modulo 2^64, so the difference of two snapshots is always exact.
#pragma once

#include <flopmeter/core/attention_pairs.h>
#include <flopmeter/core/dtype.h>
#include <flopmeter/core/op_profile.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace flopmeter {

/// Which part of training an operation belonged to.
enum class Pass : std::uint8_t { forward, backward, recompute };
inline constexpr std::size_t pass_count = 3;

struct FlopTotals {
  /// FLOPs that ran, by compute dtype and pass.
  std::array<std::array<std::uint64_t, pass_count>, dtype_count> executed{};
  /// The same work as the model needs it: the backward pass of attention is twice its forward pass,
  /// even if the kernel repeats work.
  std::array<std::array<std::uint64_t, pass_count>, dtype_count> model{};
  std::uint64_t calls = 0;  ///< operations counted, from which the cost of counting follows
  std::uint64_t unsupported_op_calls = 0;  ///< calls whose arguments have no FLOP cost
  /// Model FLOPs, without recomputation, of work that every rank of a tensor-parallel group
  /// repeats.
  std::uint64_t replicated = 0;
  /// Model FLOPs, without recomputation, that are an upper bound: lengths or masks on the device
  /// decide.
  std::uint64_t bounded = 0;
  /// Calls of attention, by AttentionPairs.
  std::array<std::uint64_t, 4> attention_calls{};
};

/// Work between two snapshots of one counter.
FlopTotals operator-(const FlopTotals& after, const FlopTotals& before);

/// Implemented by adapters.  Any thread may call snapshot(); it neither blocks the counted
/// operations nor allocates.
class FlopCounter {
 public:
  FlopCounter() = default;
  FlopCounter(const FlopCounter&) = delete;
  FlopCounter& operator=(const FlopCounter&) = delete;
  FlopCounter(FlopCounter&&) = delete;
  FlopCounter& operator=(FlopCounter&&) = delete;
  virtual ~FlopCounter() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Static text for the records if it counts in an unusual way, else empty.
  [[nodiscard]] virtual std::string_view note() const { return {}; }
  [[nodiscard]] virtual FlopTotals snapshot() const = 0;
  /// Turns counting on or off; off costs one load per operation.
  virtual void enable(bool on) = 0;
  /// Number of calls so far whose work is an upper bound until the device has run them.
  [[nodiscard]] virtual std::uint64_t late_calls() const noexcept { return 0; }
  /// Difference between the exact work of the calls [first, last), as far as it is known, and
  /// their totals.  Forgets the calls before `last`.  Training thread.
  virtual FlopTotals late_work(std::uint64_t /*first*/, std::uint64_t /*last*/) noexcept {
    return {};
  }
  /// Nanoseconds that counting one operation takes, calibrated by the adapter.
  [[nodiscard]] virtual double nanoseconds_per_call() const = 0;

  /// Names what ran without a FLOP cost, as a sentence that lives until the process ends.
  [[nodiscard]] virtual std::string_view unsupported_note() const { return {}; }

  /// Starts to profile every operator, which is slow; false if that is impossible (another profile
  /// runs, or the counter has no profiler).
  virtual bool begin_profile() { return false; }
  /// Ends the profile and returns it.  Empty if a device has not reached the profile's end: then
  /// call it again later.
  virtual std::optional<OpProfile> end_profile() { return std::nullopt; }
};

}  // namespace flopmeter
