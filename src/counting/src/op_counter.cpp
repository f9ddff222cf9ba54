// SPDX-License-Identifier: Apache-2.0
#include "host.h"
#include "late_calls.h"
#include "op_table.h"
#include "snapshot.h"

#include <flopmeter/counting/module_scope.h>
#include <flopmeter/counting/op_counter.h>
#include <flopmeter/counting/op_profiler.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>

namespace flopmeter {
namespace {

/// One small matmul must count; a counter built against another torch may read 0.
Result<void> self_test(const FlopmeterAdapter& adapter) {
  const ScratchCounters scratch;
  adapter.run_matmuls(2, 3, 4, 1, /*counted=*/1);
  std::uint64_t counted = 0;
  for (const auto& dtype : scratch.counters().totals) {
    for (const Cell& cell : dtype) counted += cell.executed.read();
  }
  if (counted == 48) return {};
  return Error{ErrorCode::unsupported,
               "the torch adapter counted " + std::to_string(counted) +
                   " FLOPs for a 2x3 by 3x4 matmul instead of 48: it was built for torch " +
                   adapter.framework_version + "; build it for the torch that is running"};
}

/// Nanoseconds that counting adds to one call: the median over rounds of counted and uncounted
/// calls.  The training waits meanwhile, so counting in Python gets fewer rounds.
double measured_call_cost(const FlopmeterAdapter& adapter) {
  constexpr int calls = 200;
  constexpr double most_nanoseconds = 10e6;
  const ScratchCounters scratch;
  std::array<double, 31> differences{};
  std::size_t rounds = 0;
  for (double spent = 0; rounds < differences.size() && spent < most_nanoseconds; ++rounds) {
    const double counted = adapter.run_matmuls(4, 4, 4, calls, /*counted=*/1);
    const double plain = adapter.run_matmuls(4, 4, 4, calls, /*counted=*/0);
    differences[rounds] = (counted - plain) / calls;
    spent += counted + plain;
  }
  auto* median = differences.begin() + rounds / 2;
  std::nth_element(differences.begin(), median, differences.begin() + rounds);
  return std::max(0.0, *median);
}

void require_installed() {
  if (const auto installed = install_op_counter(); !installed)
    throw std::runtime_error(installed.error().message);
}

/// Counts from construction to stop().
class CountedSpan {
 public:
  explicit CountedSpan(bool modules) : modules_(modules) {
    require_installed();
    require_adapter().find_new_ops();
    add_users(1, modules_ ? 1 : 0);
    begin_ = snapshot_now(modules_);
  }
  ~CountedSpan() { stop(); }
  CountedSpan(const CountedSpan&) = delete;
  CountedSpan& operator=(const CountedSpan&) = delete;
  CountedSpan(CountedSpan&&) = delete;
  CountedSpan& operator=(CountedSpan&&) = delete;

  void stop() {
    if (result_) return;
    require_adapter().find_new_ops();
    result_ = difference(snapshot_now(modules_), begin_);
    late_.stop();
    add_users(-1, modules_ ? -1 : 0);
  }
  [[nodiscard]] Snapshot so_far() const {
    Snapshot work = result_ ? *result_ : difference(snapshot_now(modules_), begin_);
    late_.resolve(work);
    return work;
  }

 private:
  bool modules_;
  LateSpan late_;
  Snapshot begin_;
  std::optional<Snapshot> result_;
};

std::uint64_t sum(const std::array<std::uint64_t, pass_count>& passes) {
  return passes[0] + passes[1] + passes[2];
}

}  // namespace

std::uint64_t Counts::model_flops() const {
  std::uint64_t flops = 0;
  for (const auto& passes : totals.model) {
    flops += passes[static_cast<std::size_t>(Pass::forward)] +
             passes[static_cast<std::size_t>(Pass::backward)];
  }
  return flops;
}

std::uint64_t Counts::hardware_flops() const {
  std::uint64_t flops = 0;
  for (const auto& passes : totals.executed) flops += sum(passes);
  return flops;
}

std::uint64_t Counts::hardware_flops(Pass pass) const {
  std::uint64_t flops = 0;
  for (const auto& passes : totals.executed) flops += passes[static_cast<std::size_t>(pass)];
  return flops;
}

std::uint64_t Counts::hardware_flops(Dtype dtype) const {
  return sum(totals.executed[static_cast<std::size_t>(dtype)]);
}

AttentionPairs Counts::attention_pairs() const {
  for (const auto pairs : {AttentionPairs::unknown, AttentionPairs::full, AttentionPairs::exact}) {
    if (totals.attention_calls[static_cast<std::size_t>(pairs)] != 0) return pairs;
  }
  return AttentionPairs::none;
}

struct OpCounter::State : CountedSpan {
  using CountedSpan::CountedSpan;
};

OpCounter::OpCounter(bool modules) : state_(std::make_unique<State>(modules)) {}
OpCounter::~OpCounter() = default;
Counts OpCounter::counts() const {
  return to_counts(state_->so_far());
}
void OpCounter::stop() {
  state_->stop();
}

struct Region::State : CountedSpan {
  using CountedSpan::CountedSpan;
  std::optional<Replay> replay;
};

Region::Region() : state_(std::make_unique<State>(counts_modules())) {}
Region::~Region() = default;
Counts Region::counts() const {
  return to_counts(state_->so_far());
}
void Region::stop() {
  state_->stop();
}
void Region::replayed(std::uint64_t times) {
  state_->stop();
  if (!state_->replay) state_->replay.emplace(state_->so_far());
  state_->replay->add(times);
}
void Region::discard() {
  replayed(~std::uint64_t{0});
}

TorchFlopCounter::TorchFlopCounter(bool replicated, std::string_view note)
    : note_(note), replicated_(replicated ? replicated_module() : 0) {
  require_installed();
}
TorchFlopCounter::~TorchFlopCounter() {
  enable(false);
}
FlopTotals TorchFlopCounter::snapshot() const {
  require_adapter().find_new_ops();
  return totals_now(replicated_);
}
void TorchFlopCounter::enable(bool on) {
  if (on == enabled_) return;
  enabled_ = on;
  const int change = on ? 1 : -1;
  add_users(change, replicated_ != 0 ? change : 0);
  add_late_users(change);
}
std::uint64_t TorchFlopCounter::late_calls() const noexcept {
  return flopmeter::late_calls();
}
FlopTotals TorchFlopCounter::late_work(std::uint64_t first, std::uint64_t last) noexcept {
  return flopmeter::late_work(first, last);
}
double TorchFlopCounter::nanoseconds_per_call() const {
  static const double cost = measured_call_cost(require_adapter());
  return cost;
}

std::string_view TorchFlopCounter::unsupported_note() const {
  static std::mutex& mutex = *new std::mutex;
  static std::map<std::size_t, std::string>& notes = *new std::map<std::size_t, std::string>;
  const auto ops = unsupported_ops();
  const std::lock_guard lock(mutex);
  std::string& note = notes[ops.size()];  // more operators, another note
  if (note.empty()) {
    note = "unsupported:";
    for (const UnsupportedOp& op : ops) note += " " + op.name;
  }
  return note;
}

bool TorchFlopCounter::begin_profile() {
  try {
    profile_ = std::make_unique<OpProfiler>(Seconds{10e-6}, true);
  } catch (const std::logic_error&) {  // another profile is running
    return false;
  }
  return true;
}
std::optional<OpProfile> TorchFlopCounter::end_profile() {
  if (!profile_) return std::nullopt;
  auto result = profile_->take();
  if (result) profile_.reset();
  return result;
}

Result<void> install_op_counter() {
  const FlopmeterAdapter* adapter = attached_adapter();
  if (adapter == nullptr) {
    return Error{
        ErrorCode::unsupported,
        "counting needs the torch adapter: include <flopmeter/torch/op_counter.h> and link "
        "flopmeter::torch"};
  }
  static const Result<void> result = [adapter] {
    adapter->install();
    return self_test(*adapter);
  }();
  return result;
}

std::vector<UnsupportedOp> unsupported_ops() {
  return to_counts(snapshot_now(false)).unsupported;
}

std::vector<std::string> intercepted_ops() {
  std::vector<std::string> names;
  if (const FlopmeterAdapter* adapter = attached_adapter()) {
    adapter->list_intercepted(&names, [](void* list, const char* name) {
      static_cast<std::vector<std::string>*>(list)->emplace_back(name);
    });
  }
  return names;
}

namespace {

/// The entry for a name that a user registers.
Result<OpEntry*> user_entry(const std::string& name) {
  if (name.find("::") == std::string::npos) {
    return Error{ErrorCode::invalid_argument,
                 "register_op: '" + name +
                     "' is not an operator name; include the namespace, as in \"mylib::" + name +
                     "\""};
  }
  if (auto installed = install_op_counter(); !installed) return installed.error();
  OpEntry* entry = find_or_add_op(name);
  if (entry == nullptr)
    return Error{ErrorCode::unsupported,
                 "register_op: too many operators; '" + name + "' is not counted"};
  return entry;
}

std::mutex& register_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

}  // namespace

Result<void> register_op(const std::string& name, UserRule rule) {
  const std::lock_guard lock(register_mutex());
  const Result<OpEntry*> entry = user_entry(name);
  if (!entry) return entry.error();
  switch (require_adapter().intercept(name.c_str(), *entry)) {
    case FLOPMETER_INTERCEPTED:
      (*entry)->set_user_rule(std::move(rule));
      return {};
    case FLOPMETER_COMPOSITE_OP:
      return Error{
          ErrorCode::unsupported,
          "register_op: '" + name + "' is made of other operators, which are counted themselves"};
    default:
      return Error{ErrorCode::not_found,
                   "register_op: torch has no operator '" + name +
                       "'; load the library that defines it first"};
  }
}

Result<void> register_function(const std::string& name, UserRule rule) {
  const std::lock_guard lock(register_mutex());
  const Result<OpEntry*> entry = user_entry(name);
  if (!entry) return entry.error();
  (*entry)->set_user_rule(std::move(rule));
  return {};
}

}  // namespace flopmeter
