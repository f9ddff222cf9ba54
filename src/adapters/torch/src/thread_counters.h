// SPDX-License-Identifier: Apache-2.0
//
// The counters.  Each thread that runs operators owns one ThreadCounters, which only it writes (relaxed, no
// lock, no allocation) and anybody may read; a thread that ends leaves its ThreadCounters, sums and all, to
// the next one.
//
// Work inside a custom autograd function's backward has no sure pass while it happens: it is
// recompute when a nested backward goes on to walk the graph it built (that is what a reentrant
// checkpoint does), and backward otherwise.  It is added as pending, reads as backward, and is
// moved once the answer is known.
#pragma once

#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/core/flop_counter.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace flopmeter::torch_adapter {

/// Passes as they are added: the three of Pass, then work whose pass is still open.
enum class PassAttribution : std::uint8_t {
  forward,
  backward,
  recompute,
  pending_first,  ///< before the open node built any graph
  pending,        ///< after that
};
inline constexpr std::size_t attribution_count = 5;
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

using PassCells = std::array<Cell, attribution_count>;

/// A part of a counters that exists from its first use on.
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

/// What is added of a call.
struct Work {
  std::uint64_t executed = 0;
  std::uint64_t model = 0;
  AttentionPairs pairs = AttentionPairs::none;
};

struct alignas(64) ThreadCounters {
  std::array<PassCells, dtype_count> totals;
  Counter unsupported_op_calls;
  std::array<Counter, 4> attention_calls;
  std::array<Counter, max_ops> unsupported_by_op;
  std::array<Lazy<std::array<PassCells, dtype_count>>, max_ops> ops;
  /// By module when asked for, in blocks; module 0 holds what belongs to none.
  std::array<Lazy<std::array<PassCells, module_block>>, max_modules / module_block> modules;

  /// Odd while pending work moves: a reader tries again.
  std::atomic<std::uint32_t> moves{0};
  std::array<PassCells*, 128> touched{};  ///< cells that hold pending work
  std::size_t touched_count = 0;

  ThreadCounters* next = nullptr;  ///< list of all counters, grows only

  /// Books one call in the two sums that every call has.
  inline void add(
      std::size_t op, Dtype dtype, PassAttribution attribution, std::uint64_t executed, std::uint64_t model);
  /// Before add(): what else there is to add.  `module` is 0 outside of any; ignored while
  /// modules are not counted.
  void add_beside(
      std::size_t op, Dtype dtype, PassAttribution attribution, const Work& work, std::size_t module);
  /// Settles pending work: `pending` becomes `rest`, `pending_first` becomes `first`.
  void settle(PassAttribution first, PassAttribution rest);

 private:
  void touch(PassCells& cells);
};

extern constinit thread_local ThreadCounters* tls_counters __attribute__((tls_model("initial-exec")));
ThreadCounters& attach_counters();

/// This thread's counters.
inline ThreadCounters& thread_counters() {
  ThreadCounters* counters = tls_counters;
  return counters != nullptr ? *counters : attach_counters();
}

/// While alive, this thread counts into `scratch`, which no snapshot sees: for self-test and
/// calibration.
class ScratchCounters {
 public:
  ScratchCounters();
  ~ScratchCounters();
  ScratchCounters(const ScratchCounters&) = delete;
  ScratchCounters& operator=(const ScratchCounters&) = delete;
  ScratchCounters(ScratchCounters&&) = delete;
  ScratchCounters& operator=(ScratchCounters&&) = delete;
  [[nodiscard]] const ThreadCounters& counters() const { return *scratch_; }

 private:
  std::unique_ptr<ThreadCounters> scratch_;
  ThreadCounters* previous_;
};

extern std::atomic<ThreadCounters*> all_counters;

/// Calls `read` on every counters; `read` must only load.
template <class Read>
void for_each_thread(Read read) {
  for (const ThreadCounters* counters = all_counters.load(std::memory_order_acquire); counters; counters = counters->next)
    read(*counters);
}

/// Counting on or off: one load an operation when off.  Counts users, so that they may overlap.
extern std::atomic<int> counting_users;
/// The same for attribution to modules.
extern std::atomic<int> module_users;

/// With a `replicated` module, also what it counted.
FlopTotals totals_now(std::size_t replicated = 0);

inline void ThreadCounters::add(
    std::size_t op, Dtype dtype, PassAttribution attribution, std::uint64_t executed, std::uint64_t model) {
  const auto d = static_cast<std::size_t>(dtype);
  const auto b = static_cast<std::size_t>(attribution);
  totals[d][b].add(executed, model, 1);
  ops[op].get()[d][b].add(executed, model, 1);
}

}  // namespace flopmeter::torch_adapter
