// SPDX-License-Identifier: Apache-2.0
//
// The counters.  Each thread that runs operators owns one Tally, which only it writes (relaxed, no
// lock, no allocation) and anybody may read; a thread that ends leaves its Tally, sums and all, to
// the next one.
//
// Work inside a custom autograd function's backward has no sure pass while it happens: it is
// recompute when a nested backward goes on to walk the graph it built (that is what a reentrant
// checkpoint does), and backward otherwise.  It is booked as pending, reads as backward, and is
// moved once the answer is known.
#pragma once

#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/core/flop_source.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace flopmeter::torch_adapter {

/// Passes as they are booked: the three of Pass, then work whose pass is still open.
enum class Booking : std::uint8_t {
  forward,
  backward,
  recompute,
  pending_first,  ///< before the open node built any graph
  pending,        ///< after that
};
inline constexpr std::size_t booking_count = 5;
inline constexpr std::size_t max_ops = 384;
inline constexpr std::size_t max_modules = 65536;
inline constexpr std::size_t module_block = 256;

/// A counter with one writer.
class Counter {
 public:
  void add(std::uint64_t amount) {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t read() const { return value_.load(std::memory_order_relaxed); }
  /// The value, leaving 0.
  std::uint64_t take() {
    const std::uint64_t value = read();
    value_.store(0, std::memory_order_relaxed);
    return value;
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// What was counted for one kind of work.
struct Cell {
  Counter executed;
  Counter model;
  Counter calls;

  void add(std::uint64_t executed_flops, std::uint64_t model_flops, std::uint64_t times) {
    executed.add(executed_flops);
    model.add(model_flops);
    calls.add(times);
  }
  void move_to(Cell& other) {
    const std::uint64_t e = executed.take();
    const std::uint64_t m = model.take();
    other.add(e, m, calls.take());
  }
};

using Bookings = std::array<Cell, booking_count>;

/// A part of a tally that exists from its first use on.
template <class T>
class Lazy {
 public:
  T& get() {
    T* part = part_.load(std::memory_order_relaxed);
    return part != nullptr ? *part : make();
  }
  [[nodiscard]] const T* peek() const { return part_.load(std::memory_order_acquire); }
  ~Lazy() { delete part_.load(std::memory_order_relaxed); }
  Lazy() = default;
  Lazy(const Lazy&) = delete;
  Lazy& operator=(const Lazy&) = delete;
  Lazy(Lazy&&) = delete;
  Lazy& operator=(Lazy&&) = delete;

 private:
  [[gnu::noinline]] T& make() {
    T* part = new T();
    part_.store(part, std::memory_order_release);
    return *part;
  }
  std::atomic<T*> part_{nullptr};
};

/// What is booked of a call.
struct Work {
  std::uint64_t executed = 0;
  std::uint64_t model = 0;
  AttentionPairs pairs = AttentionPairs::none;
};

struct alignas(64) Tally {
  std::array<Bookings, dtype_count> totals;
  Counter unpriced_calls;
  std::array<Counter, 4> attention_calls;
  std::array<Counter, max_ops> unpriced_by_op;
  std::array<Lazy<std::array<Bookings, dtype_count>>, max_ops> ops;
  /// By module when asked for, in blocks; module 0 holds what belongs to none.
  std::array<Lazy<std::array<Bookings, module_block>>, max_modules / module_block> modules;

  /// Odd while pending work moves: a reader tries again.
  std::atomic<std::uint32_t> moves{0};
  std::array<Bookings*, 128> touched{};  ///< cells that hold pending work
  std::size_t touched_count = 0;

  Tally* next = nullptr;  ///< list of all tallies, grows only

  /// Books one call in the two sums that every call has.
  inline void book(
      std::size_t op, Dtype dtype, Booking booking, std::uint64_t executed, std::uint64_t model);
  /// Before book(): what else there is to book.  `module` is 0 outside of any; ignored while
  /// modules are not counted.
  void book_beside(
      std::size_t op, Dtype dtype, Booking booking, const Work& work, std::size_t module);
  /// Settles pending work: `pending` becomes `rest`, `pending_first` becomes `first`.
  void settle(Booking first, Booking rest);

 private:
  void touch(Bookings& cells);
};

extern constinit thread_local Tally* tls_tally __attribute__((tls_model("initial-exec")));
Tally& attach_tally();

/// This thread's tally.
inline Tally& thread_tally() {
  Tally* tally = tls_tally;
  return tally != nullptr ? *tally : attach_tally();
}

/// While alive, this thread counts into `scratch`, which no snapshot sees: for self-test and
/// calibration.
class ScratchTally {
 public:
  ScratchTally();
  ~ScratchTally();
  ScratchTally(const ScratchTally&) = delete;
  ScratchTally& operator=(const ScratchTally&) = delete;
  ScratchTally(ScratchTally&&) = delete;
  ScratchTally& operator=(ScratchTally&&) = delete;
  [[nodiscard]] const Tally& tally() const { return *scratch_; }

 private:
  std::unique_ptr<Tally> scratch_;
  Tally* previous_;
};

extern std::atomic<Tally*> all_tallies;

/// Calls `read` on every tally; `read` must only load.
template <class Read>
void for_each_tally(Read read) {
  for (const Tally* tally = all_tallies.load(std::memory_order_acquire); tally; tally = tally->next)
    read(*tally);
}

/// Counting on or off: one load an operation when off.  Counts users, so that they may overlap.
extern std::atomic<int> counting_users;
/// The same for attribution to modules.
extern std::atomic<int> module_users;

/// With a `replicated` module, also what it counted.
FlopTotals totals_now(std::size_t replicated = 0);

inline void Tally::book(
    std::size_t op, Dtype dtype, Booking booking, std::uint64_t executed, std::uint64_t model) {
  const auto d = static_cast<std::size_t>(dtype);
  const auto b = static_cast<std::size_t>(booking);
  totals[d][b].add(executed, model, 1);
  ops[op].get()[d][b].add(executed, model, 1);
}

}  // namespace flopmeter::torch_adapter
