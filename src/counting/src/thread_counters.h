// SPDX-License-Identifier: Apache-2.0
//
// The counters.  Each thread that runs operators owns one ThreadCounters.  Only that thread writes
// it (relaxed, without lock or allocation); every thread may read it.  A thread that ends leaves
// its ThreadCounters, with the sums in it, to the next thread.
//
// Work inside a custom autograd function's backward has no certain pass while it runs.  It is
// recompute if a nested backward then walks the graph it built, as a reentrant checkpoint does, and
// backward otherwise.  It is added as pending, reads as backward, and moves once the pass is known.
#pragma once

#include <flopmeter/core/flop_counter.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace flopmeter {

/// The three values of Pass, then work whose pass is not known yet.
enum class PassAttribution : std::uint8_t {
  forward,
  backward,
  recompute,
  pending_first,  ///< before the open node built any graph
  pending,        ///< after that
};
inline constexpr std::size_t attribution_count = 5;
inline constexpr std::size_t max_ops = 1024;
inline constexpr std::size_t max_modules = 65536;
inline constexpr std::size_t module_block = 256;

/// A counter with one writer.
class Counter {
 public:
  void add(std::uint64_t amount) {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  /// A reader that sees moved values also sees that `moves` is odd or has changed.
  [[nodiscard]] std::uint64_t read() const { return value_.load(std::memory_order_acquire); }
  void move_to(Counter& other) {
    const std::uint64_t value = value_.load(std::memory_order_relaxed);
    value_.store(0, std::memory_order_release);
    other.value_.store(other.value_.load(std::memory_order_relaxed) + value,
                       std::memory_order_release);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// The counts for one kind of work.
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
    executed.move_to(other.executed);
    model.move_to(other.model);
    calls.move_to(other.calls);
  }
};

using PassCells = std::array<Cell, attribution_count>;

/// A part of the counters that is allocated on first use.
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

/// The work of one call.
struct Work {
  std::uint64_t executed = 0;
  std::uint64_t model = 0;
  AttentionPairs pairs = AttentionPairs::none;
  bool bounded = false;  ///< `model` is an upper bound
};

struct alignas(64) ThreadCounters {
  std::array<PassCells, dtype_count> totals;
  Counter unsupported_op_calls;
  Counter bounded;  ///< model FLOPs that are an upper bound
  std::array<Counter, 4> attention_calls;
  std::array<Counter, max_ops> unsupported_by_op;
  std::array<Lazy<std::array<PassCells, dtype_count>>, max_ops> ops;
  /// By module if modules are counted, in blocks; module 0 holds work outside of all modules.
  std::array<Lazy<std::array<PassCells, module_block>>, max_modules / module_block> modules;

  /// Odd while pending work moves: a reader then retries.
  std::atomic<std::uint32_t> moves{0};
  std::array<PassCells*, 128> touched{};  ///< cells that hold pending work
  std::size_t touched_count = 0;

  ThreadCounters* next = nullptr;  ///< list of all counters, grows only

  /// Adds one call to the two sums that every call has.
  inline void add(std::size_t op,
                  Dtype dtype,
                  PassAttribution attribution,
                  std::uint64_t executed,
                  std::uint64_t model);
  /// Called before add(): module, pending work, attention.  `module` is 0 outside of all modules,
  /// or FLOPMETER_MODULES_OFF.
  void add_details(std::size_t op,
                   Dtype dtype,
                   PassAttribution attribution,
                   const Work& work,
                   std::uint32_t module);
  /// Moves pending work: `pending_first` becomes `first`, `pending` becomes `rest`.
  void settle(PassAttribution first, PassAttribution rest);

 private:
  void touch(PassCells& cells);
};

extern constinit thread_local ThreadCounters* tls_counters
    __attribute__((tls_model("initial-exec")));
ThreadCounters& attach_counters();

/// This thread's counters.
inline ThreadCounters& thread_counters() {
  ThreadCounters* counters = tls_counters;
  return counters != nullptr ? *counters : attach_counters();
}

/// While alive, this thread counts into counters that no snapshot reads: for the self-test and
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

/// Calls `read` for the counters of every thread; `read` must only load.
template <class Read>
void for_each_thread(Read read) {
  for (const ThreadCounters* counters = all_counters.load(std::memory_order_acquire); counters;
       counters = counters->next)
    read(*counters);
}

/// The sum over all threads.  With a `replicated` module, also the model FLOPs of that module.
FlopTotals totals_now(std::size_t replicated = 0);

inline void ThreadCounters::add(std::size_t op,
                                Dtype dtype,
                                PassAttribution attribution,
                                std::uint64_t executed,
                                std::uint64_t model) {
  const auto d = static_cast<std::size_t>(dtype);
  const auto b = static_cast<std::size_t>(attribution);
  totals[d][b].add(executed, model, 1);
  ops[op].get()[d][b].add(executed, model, 1);
}

}  // namespace flopmeter
