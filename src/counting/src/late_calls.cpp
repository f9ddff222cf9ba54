// SPDX-License-Identifier: Apache-2.0
#include "late_calls.h"

#include "host.h"

#include <flopmeter/counting/adapter.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

namespace flopmeter {
namespace {

constexpr std::size_t most_calls = 4096;  // more keep their upper bound

/// Starts that are being copied; the adapter shares copies of one tensor.
class Starts {
 public:
  Starts(const void* tensor, std::uint64_t group, bool may_be_late)
      : copy_(attached_adapter()->copy_starts(tensor, group, may_be_late ? 1 : 0)) {}
  ~Starts() {
    if (copy_ != nullptr) attached_adapter()->release_starts(copy_);
  }
  Starts(Starts&& other) noexcept : copy_(other.copy_) { other.copy_ = nullptr; }
  Starts(const Starts&) = delete;
  Starts& operator=(const Starts&) = delete;
  Starts& operator=(Starts&&) = delete;

  [[nodiscard]] bool exists() const { return copy_ != nullptr; }
  /// Empty if the device has not reached the copy.
  [[nodiscard]] std::optional<std::span<const std::int64_t>> read() const {
    const std::int64_t* values = nullptr;
    std::size_t count = 0;
    if (attached_adapter()->read_starts(copy_, &values, &count) != 1) return std::nullopt;
    return std::span{values, count};
  }

 private:
  void* copy_;
};

struct LateCall {
  std::uint64_t number;
  Starts queries;
  Starts keys;
  PackedAttention attention;
  OpCost bound;
  std::size_t dtype;
  std::size_t pass;
  bool optimizer_work;
};

struct LateCalls {
  std::mutex mutex;
  std::deque<LateCall> calls;
  std::atomic<std::uint64_t> count{0};
  std::atomic<std::uint64_t> group{0};  ///< of calls that share copies: those of one step
  std::atomic<int> users{0};
};
LateCalls& late() {
  static LateCalls& instance = *new LateCalls;
  return instance;
}

std::optional<OpCost> known_cost(const PackedAttention& attention,
                                 const Starts& queries,
                                 const Starts& keys) {
  const auto query_starts = queries.read();
  if (!query_starts) return std::nullopt;
  const auto key_starts = keys.read();
  return key_starts ? attention.cost(*query_starts, *key_starts) : std::nullopt;
}

void add_difference(FlopTotals& totals, const LateCall& call, const OpCost& exact) {
  const auto difference = [](Flops to, Flops from) {
    return static_cast<std::uint64_t>(to.value - from.value);  // modulo 2^64
  };
  totals.executed[call.dtype][call.pass] += difference(exact.executed, call.bound.executed);
  if (!call.optimizer_work) {
    totals.model[call.dtype][call.pass] += difference(exact.model, call.bound.model);
    if (call.pass != static_cast<std::size_t>(Pass::recompute))
      totals.bounded -= static_cast<std::uint64_t>(call.bound.model.value);
  }
  --totals.attention_calls[static_cast<std::size_t>(AttentionPairs::unknown)];
  ++totals.attention_calls[static_cast<std::size_t>(AttentionPairs::exact)];
}

}  // namespace

void add_late_users(int change) {
  late().users.fetch_add(change, std::memory_order_relaxed);
}

void resolve_starts(const OpEntry& entry, const FlopmeterCall& call, OpCost& cost) noexcept try {
  const FlopmeterAdapter* adapter = attached_adapter();
  if (adapter == nullptr || adapter->copy_starts == nullptr) return;
  const OpCall read{.args = to_args(call.args, call.arg_count), .output = {}};
  const auto attention = entry.rule->packed(read);
  if (!attention) return;
  const auto at = static_cast<std::size_t>(attention->starts);
  if (at + 1 >= call.arg_count || call.tensors[at] == nullptr || call.tensors[at + 1] == nullptr)
    return;
  // The pass of pending work is not known yet.  Gradients are in the backward pass.
  std::size_t pass = call.pass;
  if (attention->backward && pass >= FLOPMETER_PENDING_FIRST) pass = FLOPMETER_BACKWARD;
  LateCalls& all = late();
  const bool may_be_late = pass < pass_count && all.users.load(std::memory_order_relaxed) > 0;
  const std::uint64_t group = all.group.load(std::memory_order_relaxed);
  const auto starts = [&](bool late_too) {
    return std::pair{Starts(call.tensors[at], group, late_too),
                     Starts(call.tensors[at + 1], group, late_too)};
  };
  if (const auto on_host = starts(false); on_host.first.exists() && on_host.second.exists()) {
    if (const auto exact = known_cost(*attention, on_host.first, on_host.second)) cost = *exact;
    return;
  }
  if (!may_be_late) return;
  auto [queries, keys] = starts(true);
  if (!queries.exists() || !keys.exists()) return;
  const std::lock_guard lock(all.mutex);
  if (all.calls.size() >= most_calls) return;
  all.calls.push_back({.number = all.count.load(std::memory_order_relaxed),
                       .queries = std::move(queries),
                       .keys = std::move(keys),
                       .attention = *attention,
                       .bound = cost,
                       .dtype = call.dtype,
                       .pass = pass,
                       .optimizer_work = call.optimizer_work != 0});
  all.count.fetch_add(1, std::memory_order_relaxed);
} catch (...) {  // no memory: the bound stays
}

std::uint64_t late_calls() noexcept {
  late().group.fetch_add(1, std::memory_order_relaxed);
  return late().count.load(std::memory_order_relaxed);
}

FlopTotals late_work(std::uint64_t first, std::uint64_t last) noexcept {
  FlopTotals totals;
  LateCalls& all = late();
  const std::lock_guard lock(all.mutex);
  while (!all.calls.empty() && all.calls.front().number < last) {
    const LateCall& call = all.calls.front();
    if (call.number >= first) {
      if (const auto exact = known_cost(call.attention, call.queries, call.keys))
        add_difference(totals, call, *exact);
    }
    all.calls.pop_front();
  }
  return totals;
}

}  // namespace flopmeter
