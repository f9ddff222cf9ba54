// SPDX-License-Identifier: Apache-2.0
#include "thread_counters.h"

#include <flopmeter/adapter_abi.h>

#include <mutex>
#include <vector>

namespace flopmeter {
namespace {

/// The counters of threads that ended.  Never freed: threads may outlive static destruction.
struct Idle {
  std::mutex mutex;
  std::vector<ThreadCounters*> counters;
};
Idle& idle() {
  static Idle& instance = *new Idle;
  return instance;
}

struct Attachment {
  ThreadCounters* counters = nullptr;
  ~Attachment() {
    if (counters == nullptr) return;
    const std::lock_guard lock(idle().mutex);
    idle().counters.push_back(counters);
    tls_counters = nullptr;
  }
};
thread_local Attachment attachment;

constexpr std::size_t at(PassAttribution attribution) {
  return static_cast<std::size_t>(attribution);
}

}  // namespace

std::atomic<ThreadCounters*> all_counters{nullptr};

constinit thread_local ThreadCounters* tls_counters = nullptr;

[[gnu::noinline]] ThreadCounters& attach_counters() {
  ThreadCounters* counters = nullptr;
  {
    const std::lock_guard lock(idle().mutex);
    if (!idle().counters.empty()) {
      counters = idle().counters.back();
      idle().counters.pop_back();
    }
  }
  if (counters == nullptr) {
    counters = new ThreadCounters;
    counters->next = all_counters.load(std::memory_order_relaxed);
    while (
        !all_counters.compare_exchange_weak(counters->next, counters, std::memory_order_release)) {
    }
  }
  attachment.counters = counters;
  tls_counters = counters;
  return *counters;
}

void ThreadCounters::touch(PassCells& cells) {
  const auto open = [&](PassAttribution b) { return cells[at(b)].calls.read() != 0; };
  if (open(PassAttribution::pending_first) || open(PassAttribution::pending)) return;
  if (touched_count == touched.size()) settle(PassAttribution::backward, PassAttribution::backward);
  touched[touched_count++] = &cells;
}

void ThreadCounters::add_details(std::size_t op,
                                 Dtype dtype,
                                 PassAttribution attribution,
                                 const Work& work,
                                 std::uint32_t module) {
  const auto d = static_cast<std::size_t>(dtype);
  PassCells* by_module = nullptr;
  if (module != FLOPMETER_MODULES_OFF)
    by_module = &modules[module / module_block].get()[module % module_block];
  if (attribution >= PassAttribution::pending_first) {
    touch(totals[d]);
    touch(ops[op].get()[d]);
    if (by_module != nullptr) touch(*by_module);
  }
  if (by_module != nullptr) {
    (*by_module)[at(attribution)].add(work.executed, work.model, 1);
  }
  if (work.pairs != AttentionPairs::none)
    attention_calls[static_cast<std::size_t>(work.pairs)].add(1);
  if (work.bounded && attribution != PassAttribution::recompute) bounded.add(work.model);
}

void ThreadCounters::settle(PassAttribution first, PassAttribution rest) {
  if (touched_count == 0) return;
  moves.fetch_add(1, std::memory_order_acq_rel);
  for (std::size_t i = 0; i < touched_count; ++i) {
    PassCells& cells = *touched[i];
    cells[at(PassAttribution::pending_first)].move_to(cells[at(first)]);
    cells[at(PassAttribution::pending)].move_to(cells[at(rest)]);
  }
  touched_count = 0;
  moves.fetch_add(1, std::memory_order_release);
}

ScratchCounters::ScratchCounters() : scratch_(new ThreadCounters{}), previous_(tls_counters) {
  tls_counters = scratch_.get();
}

ScratchCounters::~ScratchCounters() {
  tls_counters = previous_;
}

FlopTotals totals_now(std::size_t replicated) {
  FlopTotals sum;
  for_each_thread([&](const ThreadCounters& counters) {
    const auto* modules =
        replicated != 0 ? counters.modules[replicated / module_block].peek() : nullptr;
    for (std::uint32_t before = 1;;) {
      FlopTotals one;
      before = counters.moves.load(std::memory_order_acquire);
      for (std::size_t d = 0; d < dtype_count; ++d) {
        for (std::size_t b = 0; b < attribution_count; ++b) {
          const std::size_t pass = b < pass_count ? b : at(PassAttribution::backward);
          one.executed[d][pass] += counters.totals[d][b].executed.read();
          one.model[d][pass] += counters.totals[d][b].model.read();
          one.calls += counters.totals[d][b].calls.read();
        }
      }
      for (std::size_t b = 0; modules != nullptr && b < attribution_count; ++b) {
        if (b != at(PassAttribution::recompute))
          one.replicated += (*modules)[replicated % module_block][b].model.read();
      }
      if (before % 2 != 0 || counters.moves.load(std::memory_order_relaxed) != before) continue;
      for (std::size_t d = 0; d < dtype_count; ++d) {
        for (std::size_t p = 0; p < pass_count; ++p) {
          sum.executed[d][p] += one.executed[d][p];
          sum.model[d][p] += one.model[d][p];
        }
      }
      sum.calls += one.calls;
      sum.replicated += one.replicated;
      break;
    }
    sum.unsupported_op_calls += counters.unsupported_op_calls.read();
    sum.bounded += counters.bounded.read();
    for (std::size_t i = 0; i < sum.attention_calls.size(); ++i)
      sum.attention_calls[i] += counters.attention_calls[i].read();
  });
  return sum;
}

}  // namespace flopmeter
