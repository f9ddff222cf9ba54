// SPDX-License-Identifier: Apache-2.0
#include "snapshot.h"

#include <flopmeter/torch/module_scope.h>
#include <flopmeter/torch/op_counter.h>
#include <flopmeter/torch/op_profiler.h>

#include <optional>
#include <stdexcept>

namespace flopmeter {

using torch_adapter::counting_users;
using torch_adapter::module_users;
using torch_adapter::Snapshot;

namespace {

void require_installed() {
  if (const auto installed = install_op_counter(); !installed)
    throw std::runtime_error(installed.error().message);
}

/// A bucket of counting, from construction to stop().
class Bucket {
 public:
  explicit Bucket(bool modules) : modules_(modules) {
    require_installed();
    counting_users.fetch_add(1);
    if (modules_) module_users.fetch_add(1);
    begin_ = torch_adapter::snapshot_now(modules_);
  }
  ~Bucket() { stop(); }
  Bucket(const Bucket&) = delete;
  Bucket& operator=(const Bucket&) = delete;
  Bucket(Bucket&&) = delete;
  Bucket& operator=(Bucket&&) = delete;

  void stop() {
    if (result_) return;
    result_ = torch_adapter::difference(torch_adapter::snapshot_now(modules_), begin_);
    counting_users.fetch_sub(1);
    if (modules_) module_users.fetch_sub(1);
  }
  [[nodiscard]] Snapshot so_far() const {
    return result_ ? *result_
                   : torch_adapter::difference(torch_adapter::snapshot_now(modules_), begin_);
  }

 private:
  bool modules_;
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

std::uint64_t Counts::executed() const {
  std::uint64_t flops = 0;
  for (const auto& passes : totals.executed) flops += sum(passes);
  return flops;
}

std::uint64_t Counts::executed(Pass pass) const {
  std::uint64_t flops = 0;
  for (const auto& passes : totals.executed) flops += passes[static_cast<std::size_t>(pass)];
  return flops;
}

std::uint64_t Counts::executed(Dtype dtype) const {
  return sum(totals.executed[static_cast<std::size_t>(dtype)]);
}

AttentionPairs Counts::attention_pairs() const {
  for (const auto pairs : {AttentionPairs::unknown, AttentionPairs::full, AttentionPairs::exact}) {
    if (totals.attention_calls[static_cast<std::size_t>(pairs)] != 0) return pairs;
  }
  return AttentionPairs::none;
}

struct OpCounter::State : Bucket {
  using Bucket::Bucket;
};

OpCounter::OpCounter(bool modules) : state_(std::make_unique<State>(modules)) {}
OpCounter::~OpCounter() = default;
Counts OpCounter::counts() const {
  return torch_adapter::to_counts(state_->so_far());
}
void OpCounter::stop() {
  state_->stop();
}

struct Region::State : Bucket {
  using Bucket::Bucket;
};

Region::Region() : state_(std::make_unique<State>(module_users.load() != 0)) {}
Region::~Region() = default;
Counts Region::counts() const {
  return torch_adapter::to_counts(state_->so_far());
}
void Region::stop() {
  state_->stop();
}
void Region::replayed(std::uint64_t times) {
  state_->stop();
  torch_adapter::add_again(state_->so_far(), times);
}

TorchFlopCounter::TorchFlopCounter(bool replicated)
    : replicated_(replicated ? replicated_module() : 0) {
  require_installed();
}
TorchFlopCounter::~TorchFlopCounter() {
  enable(false);
}
FlopTotals TorchFlopCounter::snapshot() const {
  return torch_adapter::totals_now(replicated_);
}
void TorchFlopCounter::enable(bool on) {
  if (on == enabled_) return;
  enabled_ = on;
  counting_users.fetch_add(on ? 1 : -1);
  if (replicated_ != 0) torch_adapter::module_users.fetch_add(on ? 1 : -1);
}
double TorchFlopCounter::nanoseconds_per_call() const {
  static const double cost = torch_adapter::measured_call_cost();
  return cost;
}

bool TorchFlopCounter::begin_profile() {
  try {
    profile_ = std::make_unique<OpProfiler>();
  } catch (const std::logic_error&) {  // somebody else's runs
    return false;
  }
  return true;
}
std::optional<OpProfile> TorchFlopCounter::end_profile() {
  if (!profile_) return std::nullopt;
  auto result = profile_->stop();
  profile_.reset();
  return result;
}

}  // namespace flopmeter
