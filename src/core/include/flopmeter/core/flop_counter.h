// SPDX-License-Identifier: Apache-2.0
//
// FlopCounter: the seam through which a framework's adapter tells what ran.  Totals are cumulative
// and taken modulo 2^64: the difference of two snapshots is exact however long the process lives.
#pragma once

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

/// How much is known of which (query, key) pairs attention really used.
enum class AttentionPairs : std::uint8_t {
  none,     ///< no attention was seen
  exact,    ///< every mask was known (causal flag, lengths, or no mask at all)
  full,     ///< all pairs were counted because a mask tensor or plain matmuls hid the mask
  unknown,  ///< lengths live on the device
};

constexpr std::string_view to_string(AttentionPairs pairs) {
  constexpr auto names = std::to_array<std::string_view>({"none", "exact", "full", "unknown"});
  return names[static_cast<std::size_t>(pairs)];
}

struct FlopTotals {
  /// FLOPs that ran, by compute dtype and pass.
  std::array<std::array<std::uint64_t, pass_count>, dtype_count> executed{};
  /// The same work as a model needs it: attention's backward is twice its forward, whatever the
  /// kernel repeats.
  std::array<std::array<std::uint64_t, pass_count>, dtype_count> model{};
  std::uint64_t calls = 0;  ///< operations counted: what the counting itself cost follows from it
  std::uint64_t unsupported_op_calls = 0;  ///< seen, but their arguments had no flop_cost
  /// Model FLOPs, recompute left out, of work that every rank of a tensor-parallel group does
  /// alike.
  std::uint64_t replicated = 0;
  /// Calls of attention by what was known of their pairs, by AttentionPairs.
  std::array<std::uint64_t, 4> attention_calls{};
};

/// Work done between two snapshots of one source.
FlopTotals operator-(const FlopTotals& after, const FlopTotals& before);

/// Implemented by adapters.  snapshot() may be called from any thread, neither locks out the
/// operations it counts nor allocates.
class FlopCounter {
 public:
  FlopCounter() = default;
  FlopCounter(const FlopCounter&) = delete;
  FlopCounter& operator=(const FlopCounter&) = delete;
  FlopCounter(FlopCounter&&) = delete;
  FlopCounter& operator=(FlopCounter&&) = delete;
  virtual ~FlopCounter() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual FlopTotals snapshot() const = 0;
  /// Counting on or off; off costs one load an operation.
  virtual void enable(bool on) = 0;
  /// Nanoseconds that counting one operation costs, calibrated by the adapter.
  [[nodiscard]] virtual double nanoseconds_per_call() const = 0;

  /// Starts to watch every operator, which is slow; false where that is not possible (another
  /// profile runs, or the source cannot).
  virtual bool begin_profile() { return false; }
  /// Ends it and tells what ran since begin_profile().
  virtual std::optional<OpProfile> end_profile() { return std::nullopt; }
};

}  // namespace flopmeter
