// SPDX-License-Identifier: Apache-2.0
#include "tally.h"

#include <mutex>
#include <vector>

namespace flopmeter::torch_adapter {
namespace {

/// Leaked on purpose: threads may outlive static destruction.
struct Idle {
  std::mutex mutex;
  std::vector<Tally*> tallies;
};
Idle& idle() {
  static Idle& instance = *new Idle;
  return instance;
}

struct Attachment {
  Tally* tally = nullptr;
  ~Attachment() {
    if (tally == nullptr) return;
    const std::lock_guard lock(idle().mutex);
    idle().tallies.push_back(tally);
    tls_tally = nullptr;
  }
};
thread_local Attachment attachment;

constexpr std::size_t at(Booking booking) {
  return static_cast<std::size_t>(booking);
}

}  // namespace

std::atomic<Tally*> all_tallies{nullptr};
std::atomic<int> counting_users{0};
std::atomic<int> module_users{0};

constinit thread_local Tally* tls_tally = nullptr;

[[gnu::noinline]] Tally& attach_tally() {
  Tally* tally = nullptr;
  {
    const std::lock_guard lock(idle().mutex);
    if (!idle().tallies.empty()) {
      tally = idle().tallies.back();
      idle().tallies.pop_back();
    }
  }
  if (tally == nullptr) {
    tally = new Tally;
    tally->next = all_tallies.load(std::memory_order_relaxed);
    while (!all_tallies.compare_exchange_weak(tally->next, tally, std::memory_order_release)) {
    }
  }
  attachment.tally = tally;
  tls_tally = tally;
  return *tally;
}

void Tally::touch(Bookings& cells) {
  const auto open = [&](Booking b) { return cells[at(b)].calls.read() != 0; };
  if (open(Booking::pending_first) || open(Booking::pending)) return;
  if (touched_count == touched.size()) settle(Booking::backward, Booking::backward);
  touched[touched_count++] = &cells;
}

void Tally::book_beside(
    std::size_t op, Dtype dtype, Booking booking, const Work& work, std::size_t module) {
  const auto d = static_cast<std::size_t>(dtype);
  Bookings* by_module = nullptr;
  if (module_users.load(std::memory_order_relaxed) != 0)
    by_module = &modules[module / module_block].get()[module % module_block];
  if (booking >= Booking::pending_first) {
    touch(totals[d]);
    touch(ops[op].get()[d]);
    if (by_module != nullptr) touch(*by_module);
  }
  if (by_module != nullptr) {
    (*by_module)[at(booking)].add(work.executed, work.model, 1);
  }
  if (work.pairs != AttentionPairs::none)
    attention_calls[static_cast<std::size_t>(work.pairs)].add(1);
}

void Tally::settle(Booking first, Booking rest) {
  if (touched_count == 0) return;
  moves.fetch_add(1, std::memory_order_acq_rel);
  for (std::size_t i = 0; i < touched_count; ++i) {
    Bookings& cells = *touched[i];
    cells[at(Booking::pending_first)].move_to(cells[at(first)]);
    cells[at(Booking::pending)].move_to(cells[at(rest)]);
  }
  touched_count = 0;
  moves.fetch_add(1, std::memory_order_release);
}

ScratchTally::ScratchTally() : scratch_(new Tally{}), previous_(tls_tally) {
  tls_tally = scratch_.get();
}

ScratchTally::~ScratchTally() {
  tls_tally = previous_;
}

FlopTotals totals_now(std::size_t replicated) {
  FlopTotals sum;
  for_each_tally([&](const Tally& tally) {
    const auto* modules =
        replicated != 0 ? tally.modules[replicated / module_block].peek() : nullptr;
    for (std::uint32_t before = 1;;) {
      FlopTotals one;
      before = tally.moves.load(std::memory_order_acquire);
      for (std::size_t d = 0; d < dtype_count; ++d) {
        for (std::size_t b = 0; b < booking_count; ++b) {
          const std::size_t pass = b < pass_count ? b : at(Booking::backward);
          one.executed[d][pass] += tally.totals[d][b].executed.read();
          one.model[d][pass] += tally.totals[d][b].model.read();
          one.calls += tally.totals[d][b].calls.read();
        }
      }
      for (std::size_t b = 0; modules != nullptr && b < booking_count; ++b) {
        if (b != at(Booking::recompute))
          one.replicated += (*modules)[replicated % module_block][b].model.read();
      }
      std::atomic_thread_fence(std::memory_order_acquire);
      if (before % 2 != 0 || tally.moves.load(std::memory_order_relaxed) != before) continue;
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
    sum.unpriced_calls += tally.unpriced_calls.read();
    for (std::size_t i = 0; i < sum.attention_calls.size(); ++i)
      sum.attention_calls[i] += tally.attention_calls[i].read();
  });
  return sum;
}

}  // namespace flopmeter::torch_adapter
