// SPDX-License-Identifier: Apache-2.0
#include "snapshot.h"

#include "op_table.h"

#include <flopmeter/counting/module_scope.h>

#include <mutex>

namespace flopmeter {
namespace {

void add(PassValues& sum, const PassCells& cells) {
  for (std::size_t b = 0; b < attribution_count; ++b) {
    CellValue& value =
        sum[b < pass_count ? b : static_cast<std::size_t>(PassAttribution::backward)];
    value.executed += cells[b].executed.read();
    value.model += cells[b].model.read();
    value.calls += cells[b].calls.read();
  }
}

void subtract(PassValues& from, const PassValues& amount) {
  for (std::size_t p = 0; p < pass_count; ++p) {
    from[p].executed -= amount[p].executed;
    from[p].model -= amount[p].model;
    from[p].calls -= amount[p].calls;
  }
}

void read_counters(const ThreadCounters& counters, bool modules, Snapshot& into) {
  for (std::size_t op = 0; op < into.ops.size(); ++op) {
    into.unsupported[op] += counters.unsupported_by_op[op].read();
    const auto* cells = counters.ops[op].peek();
    for (std::size_t d = 0; cells != nullptr && d < dtype_count; ++d)
      add(into.ops[op][d], (*cells)[d]);
  }
  if (!modules) return;
  for (std::size_t block = 0; block < counters.modules.size(); ++block) {
    const auto* cells = counters.modules[block].peek();
    if (cells == nullptr) continue;
    if (into.modules.size() < (block + 1) * module_block)
      into.modules.resize((block + 1) * module_block);
    for (std::size_t i = 0; i < module_block; ++i)
      add(into.modules[block * module_block + i], (*cells)[i]);
  }
}

void append_rows(std::vector<CountRow>& rows,
                 const std::string& name,
                 Dtype dtype,
                 const PassValues& values) {
  for (std::size_t p = 0; p < pass_count; ++p) {
    const CellValue& value = values[p];
    if (value.calls == 0) continue;
    rows.push_back({.name = name,
                    .dtype = dtype,
                    .pass = static_cast<Pass>(p),
                    .calls = value.calls,
                    .executed = value.executed,
                    .model = value.model});
  }
}

/// Separate counters for replays, whose one writer is the thread that holds the mutex.
ThreadCounters& replay_counters() {
  static ThreadCounters& counters = []() -> ThreadCounters& {
    auto* made = new ThreadCounters;
    made->next = all_counters.load(std::memory_order_relaxed);
    while (!all_counters.compare_exchange_weak(made->next, made, std::memory_order_release)) {
    }
    return *made;
  }();
  return counters;
}
std::mutex& replay_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

}  // namespace

Snapshot snapshot_now(bool modules) {
  Snapshot snapshot;
  snapshot.totals = totals_now();
  snapshot.ops.resize(op_count());
  snapshot.unsupported.resize(op_count());
  for_each_thread(
      [&](const ThreadCounters& counters) { read_counters(counters, modules, snapshot); });
  return snapshot;
}

Snapshot difference(const Snapshot& after, const Snapshot& before) {
  Snapshot result = after;
  result.totals = after.totals - before.totals;
  for (std::size_t op = 0; op < before.ops.size(); ++op) {
    result.unsupported[op] -= before.unsupported[op];
    for (std::size_t d = 0; d < dtype_count; ++d) subtract(result.ops[op][d], before.ops[op][d]);
  }
  for (std::size_t m = 0; m < before.modules.size(); ++m)
    subtract(result.modules[m], before.modules[m]);
  return result;
}

Counts to_counts(const Snapshot& difference) {
  Counts counts;
  counts.totals = difference.totals;
  for (std::size_t op = 0; op < difference.ops.size(); ++op) {
    const std::string& name = op_entry(op)->name;
    for (std::size_t d = 0; d < dtype_count; ++d) {
      append_rows(counts.ops, name, static_cast<Dtype>(d), difference.ops[op][d]);
    }
    if (difference.unsupported[op] != 0)
      counts.unsupported.push_back({.name = name, .calls = difference.unsupported[op]});
  }
  for (std::size_t m = 0; m < difference.modules.size(); ++m) {
    append_rows(
        counts.modules, module_name(static_cast<ModuleId>(m)), Dtype::other, difference.modules[m]);
  }
  return counts;
}

Replay::Replay(const Snapshot& difference) {
  ThreadCounters& counters = replay_counters();
  const auto add = [this](Cell& cell, const CellValue& value) {
    if (value.calls != 0) cells_.push_back({&cell, value});
  };
  const auto add_counter = [this](Counter& counter, std::uint64_t value) {
    if (value != 0) counters_.push_back({&counter, value});
  };
  for (std::size_t op = 0; op < difference.ops.size(); ++op) {
    add_counter(counters.unsupported_by_op[op], difference.unsupported[op]);
    for (std::size_t d = 0; d < dtype_count; ++d) {
      for (std::size_t p = 0; p < pass_count; ++p) {
        const CellValue& value = difference.ops[op][d][p];
        if (value.calls == 0) continue;
        add(counters.ops[op].get()[d][p], value);
        add(counters.totals[d][p], value);
      }
    }
  }
  for (std::size_t m = 0; m < difference.modules.size(); ++m) {
    for (std::size_t p = 0; p < pass_count; ++p) {
      const CellValue& value = difference.modules[m][p];
      if (value.calls != 0)
        add(counters.modules[m / module_block].get()[m % module_block][p], value);
    }
  }
  const FlopTotals& totals = difference.totals;
  add_counter(counters.unsupported_op_calls, totals.unsupported_op_calls);
  add_counter(counters.bounded, totals.bounded);
  for (std::size_t i = 0; i < totals.attention_calls.size(); ++i)
    add_counter(counters.attention_calls[i], totals.attention_calls[i]);
}

void Replay::add(std::uint64_t times) const {
  const std::lock_guard lock(replay_mutex());
  for (const auto& [cell, value] : cells_)
    cell->add(times * value.executed, times * value.model, times * value.calls);
  for (const auto& [counter, value] : counters_) counter->add(times * value);
}

}  // namespace flopmeter
