// SPDX-License-Identifier: Apache-2.0
#include "late_calls.h"

#include "host.h"

#include <flopmeter/counting/adapter.h>

#include <atomic>
#include <deque>
#include <memory>
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

}  // namespace

struct LateCall {
  std::uint64_t number;
  Starts queries;
  Starts keys;
  PackedWork work;
  OpCost bound;
  std::size_t op;
  std::uint32_t module;
  std::size_t dtype;
  std::size_t pass;
  bool optimizer_work;
};

namespace {

struct LateCalls {
  std::mutex mutex;
  std::deque<std::shared_ptr<const LateCall>> calls;
  int spans = 0;  ///< that may still need the calls
  std::atomic<std::uint64_t> count{0};
  std::atomic<std::uint64_t> group{0};  ///< of calls that share copies: those of one step
  std::atomic<int> users{0};
};
LateCalls& late() {
  static LateCalls& instance = *new LateCalls;
  return instance;
}

std::optional<OpCost> known_cost(const PackedWork& work,
                                 const Starts& queries,
                                 const Starts& keys) {
  const auto query_starts = queries.read();
  if (!query_starts) return std::nullopt;
  const auto key_starts = keys.read();
  return key_starts ? work.cost(*query_starts, *key_starts) : std::nullopt;
}

/// Difference between the work of a call and its bound, modulo 2^64.
struct LateDifference {
  std::uint64_t executed;
  std::uint64_t model;

  LateDifference(const LateCall& call, const OpCost& exact)
      : executed(static_cast<std::uint64_t>(exact.executed.value - call.bound.executed.value)),
        model(call.optimizer_work
                  ? 0
                  : static_cast<std::uint64_t>(exact.model.value - call.bound.model.value)) {}
};

void add_difference(FlopTotals& totals, const LateCall& call, const LateDifference& late) {
  totals.executed[call.dtype][call.pass] += late.executed;
  totals.model[call.dtype][call.pass] += late.model;
  if (!call.optimizer_work) {
    if (call.pass != static_cast<std::size_t>(Pass::recompute))
      totals.bounded -= static_cast<std::uint64_t>(call.bound.model.value);
  }
  if (call.bound.pairs != AttentionPairs::unknown) return;
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
  const auto work = entry.rule->packed(read);
  if (!work) return;
  const auto tensor_at = [&](int place) {
    const auto at = static_cast<std::size_t>(place);
    return at < call.arg_count ? call.tensors[at] : nullptr;
  };
  const void* const query_starts = tensor_at(work->queries_at);
  const void* const key_starts = tensor_at(work->keys_at);
  if (query_starts == nullptr || key_starts == nullptr) return;
  // The pass of pending work is not known yet.  Gradients are in the backward pass.
  std::size_t pass = call.pass;
  if (work->backward && pass >= FLOPMETER_PENDING_FIRST) pass = FLOPMETER_BACKWARD;
  LateCalls& all = late();
  const bool may_be_late = pass < pass_count && all.users.load(std::memory_order_relaxed) > 0;
  const std::uint64_t group = all.group.load(std::memory_order_relaxed);
  const auto starts = [&](bool late_too) {
    return std::pair{Starts(query_starts, group, late_too), Starts(key_starts, group, late_too)};
  };
  if (const auto on_host = starts(false); on_host.first.exists() && on_host.second.exists()) {
    if (const auto exact = known_cost(*work, on_host.first, on_host.second)) cost = *exact;
    return;
  }
  if (!may_be_late) return;
  auto [queries, keys] = starts(true);
  if (!queries.exists() || !keys.exists()) return;
  const std::lock_guard lock(all.mutex);
  if (all.calls.size() >= most_calls) return;
  all.calls.push_back(
      std::make_shared<LateCall>(LateCall{.number = all.count.load(std::memory_order_relaxed),
                                          .queries = std::move(queries),
                                          .keys = std::move(keys),
                                          .work = *work,
                                          .bound = cost,
                                          .op = entry.index,
                                          .module = call.module,
                                          .dtype = call.dtype,
                                          .pass = pass,
                                          .optimizer_work = call.optimizer_work != 0}));
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
  for (const auto& call : all.calls) {
    if (call->number < first || call->number >= last) continue;
    if (const auto exact = known_cost(call->work, call->queries, call->keys))
      add_difference(totals, *call, {*call, *exact});
  }
  while (all.spans == 0 && !all.calls.empty() && all.calls.front()->number < last)
    all.calls.pop_front();
  return totals;
}

LateSpan::LateSpan() : first_(late_calls()) {
  add_late_users(1);
  const std::lock_guard lock(late().mutex);
  ++late().spans;
}

LateSpan::~LateSpan() {
  stop();
}

void LateSpan::stop() {
  if (std::exchange(stopped_, true)) return;
  add_late_users(-1);
  LateCalls& all = late();
  const std::lock_guard lock(all.mutex);
  --all.spans;
  for (const auto& call : all.calls) {
    if (call->number >= first_) calls_.push_back(call);
  }
  if (all.users.load(std::memory_order_relaxed) == 0) all.calls.clear();
}

void LateSpan::resolve(Snapshot& work) const {
  for (const auto& call : calls_) {
    const auto exact = known_cost(call->work, call->queries, call->keys);
    if (!exact) continue;
    const LateDifference late(*call, *exact);
    add_difference(work.totals, *call, late);
    const auto add = [&](CellValue& cell) {
      cell.executed += late.executed;
      cell.model += late.model;
    };
    add(work.ops[call->op][call->dtype][call->pass]);
    if (call->module < work.modules.size()) add(work.modules[call->module][call->pass]);
  }
}

}  // namespace flopmeter
