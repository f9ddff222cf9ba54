// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"
#include "context.h"
#include "op_table.h"

#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/core/current_phase.h>
#include <flopmeter/torch/op_profiler.h>

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

namespace flopmeter {
namespace torch_adapter {

// name, kind, shape of a compute operator, log2 of the elements, inside backward, recompute, across
// devices, phase
using RowKey = std::tuple<std::string, OpKind, std::string, int, bool, bool, bool, Phase>;
struct RowSum {
  std::uint64_t calls = 0;
  double self = 0;
  std::uint64_t flops = 0;
  std::uint64_t bytes = 0;
};

using Clock = std::chrono::steady_clock;

// recompute, longer than the way to an operator takes, phase
using GapKey = std::tuple<bool, bool, Phase>;
struct GapSum {
  std::uint64_t count = 0;
  double seconds = 0;
};

/// What one thread saw.
struct ThreadProfile {
  std::mutex mutex;  // its own thread's, except when the profile ends
  std::map<RowKey, RowSum> sums;
  std::map<GapKey, GapSum> gaps;
  std::optional<Clock::time_point> idle;  // since then, outside all operators; the training thread
  const void* hooks = nullptr;            // on saved tensors, around its last operator
};

struct Running {
  std::mutex mutex;
  std::thread::id thread = std::this_thread::get_id();
  Clock::time_point begin = Clock::now();
  std::vector<std::shared_ptr<ThreadProfile>> threads;
  Seconds tiny;
  std::atomic<bool> on_device{false};
};

}  // namespace torch_adapter

namespace {

using torch_adapter::Clock;
using torch_adapter::RowKey;
using torch_adapter::RowSum;
using torch_adapter::Running;
using torch_adapter::ThreadProfile;

std::atomic<std::shared_ptr<Running>> running;

/// Python between two operators of a model takes some tens of microseconds, of a checkpoint or an
/// autocast context up to a hundred.
constexpr double longest_way = 200e-6;

double seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

/// An operator on this thread's stack.
struct Frame : at::ObserverContext {
  Clock::time_point entered;  // before what watching it takes, which is nobody's time
  Clock::time_point begin;
  Clock::time_point idle;  // of a node: since then without an operator
  Frame* parent = nullptr;
  double children = 0;
  int size = 0;
  bool node = false;
  bool in_backward = false;
  bool recompute = false;  // or a node in which one that does has run
  bool compute = false;    // or inside one that is
  bool untold = false;     // what it is given does not tell its work
  bool across_devices = false;
  Phase phase = Phase::other;
  std::string shape;
  std::uint64_t flops = 0;
  std::uint64_t bytes = 0;
  std::shared_ptr<ThreadProfile> thread;
};
thread_local Frame* innermost = nullptr;

std::shared_ptr<ThreadProfile> this_thread(const std::shared_ptr<Running>& profile) {
  thread_local std::weak_ptr<Running> seen;
  thread_local std::shared_ptr<ThreadProfile> mine;
  if (seen.lock() != profile) {
    seen = profile;
    mine = std::make_shared<ThreadProfile>();
    if (profile->thread == std::this_thread::get_id()) mine->idle = profile->begin;
    const std::lock_guard lock(profile->mutex);
    profile->threads.push_back(mine);
  }
  return mine;
}

bool is_sparse(const c10::IValue& input) {
  constexpr std::array layouts = {
      c10::kSparse, c10::kSparseCsr, c10::kSparseCsc, c10::kSparseBsr, c10::kSparseBsc};
  return input.isTensor() && input.toTensor().defined() &&
         std::find(layouts.begin(), layouts.end(), input.toTensor().layout()) != layouts.end();
}

bool is_plain(const c10::IValue& input) {
  return input.isTensor() && input.toTensor().defined() && !input.toTensor().is_nested() &&
         !input.toTensor().unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

/// Size and place of the arguments.
void look_at_arguments(const at::RecordFunction& function, Frame& frame, Running& profile) {
  std::int64_t largest = 0;
  bool host = false;
  bool device = false;
  for (const c10::IValue& input : function.inputs()) {
    if (!is_plain(input)) continue;
    const at::Tensor& tensor = input.toTensor();
    largest = std::max(largest, tensor.numel());
    (tensor.is_cpu() ? host : device) = true;
  }
  frame.size = largest > 0 ? std::bit_width(static_cast<std::uint64_t>(largest)) : 0;
  if (device) profile.on_device.store(true, std::memory_order_relaxed);
  frame.across_devices = host && device && std::string_view{function.name()} == "aten::copy_";
}

/// The flop_cost of the outermost operator that has one, and the shapes it is for.
void price_arguments(const at::RecordFunction& function, const OpRule& rule, Frame& frame) {
  const auto inputs = function.inputs();
  frame.untold =
      rule.flop_cost == unknown_cost || std::any_of(inputs.begin(), inputs.end(), is_sparse);
  if (frame.untold) return;
  torch_adapter::BoxedScratch scratch;
  std::vector<Arg> args;
  for (const c10::IValue& input : inputs) {
    if (input.isTensor() && input.toTensor().defined() && !is_plain(input)) return;
    args.push_back(torch_adapter::boxed_arg(input, scratch));
    if (!args.back().is_tensor()) continue;
    frame.shape += frame.shape.empty() ? "[" : " [";
    for (int i = 0; i < args.back().rank; ++i)
      frame.shape += (i != 0 ? "," : "") + std::to_string(args.back()[i]);
    frame.shape += "]";
  }
  const auto cost = rule.flop_cost({.args = args, .output = {}});
  if (!cost) return;
  frame.flops = static_cast<std::uint64_t>(cost->executed.value);
  frame.bytes = static_cast<std::uint64_t>(cost->bytes.value);
}

void add_gap(ThreadProfile& thread, Clock::duration time, bool recompute, Phase phase) {
  const double gap = seconds(time);
  const std::lock_guard lock(thread.mutex);
  torch_adapter::GapSum& sum = thread.gaps[{recompute, gap > longest_way, phase}];
  ++sum.count;
  sum.seconds += gap;
}

/// What lies between this operator and the one before it, where both are on one level.  A
/// checkpoint's own code, which goes away with it, changes the hooks on saved tensors or follows
/// what it computed again.
void end_gap(const Frame& frame, const void* hooks) {
  const Frame* parent = frame.parent;
  ThreadProfile& thread = *frame.thread;
  if (parent != nullptr && parent->node) {
    const bool checkpoint = frame.recompute || parent->recompute;
    add_gap(thread, frame.entered - parent->idle, checkpoint, frame.phase);
  } else if (parent == nullptr && thread.idle) {
    const bool checkpoint = frame.recompute || std::exchange(thread.hooks, hooks) != hooks;
    add_gap(thread, frame.entered - *thread.idle, checkpoint, frame.phase);
  }
}

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& function) {
  const auto profile = running.load();
  if (!profile) return nullptr;
  auto frame = std::make_unique<Frame>();
  frame->entered = Clock::now();
  frame->node = function.scope() == at::RecordScope::BACKWARD_FUNCTION;
  frame->in_backward = frame->node || (innermost != nullptr && innermost->in_backward);
  const torch_adapter::Hooks hooks = torch_adapter::hooks_now();
  frame->recompute =
      torch_adapter::current_task() != torch_adapter::no_task && torch_adapter::recomputes(hooks);
  frame->compute = innermost != nullptr && innermost->compute;
  frame->phase = current_phase().load(std::memory_order_relaxed);
  if (!frame->node) {
    look_at_arguments(function, *frame, *profile);
    const OpRule* rule = find_op_rule(function.name());
    if (rule != nullptr && !rule->offline && !frame->compute) {
      frame->compute = true;
      price_arguments(function, *rule, *frame);
    }
  }
  frame->parent = innermost;
  frame->thread = this_thread(profile);
  end_gap(*frame, hooks.innermost);
  innermost = frame.get();
  frame->begin = frame->idle = Clock::now();
  return frame;
}

/// Whether a user gave a rule for it.
bool has_user_rule(std::string_view name) {
  for (std::size_t i = 0; const torch_adapter::OpEntry* entry = torch_adapter::op_entry(i); ++i) {
    const std::string_view own = entry->name;
    if (entry->user.load() != nullptr && own.substr(0, own.find('.')) == name) return true;
  }
  return false;
}

/// Operators of torch itself without a rule bear no FLOPs; those of other libraries may.
OpKind kind_of(std::string_view name, bool tiny) {
  if (find_op_rule(name) != nullptr) return OpKind::compute;
  constexpr std::array known = {
      "aten", "prim", "prims", "profiler", "c10d", "torch", "autograd", "static_runtime"};
  const std::size_t colon = name.find("::");
  const std::string_view space = name.substr(0, colon);
  const bool ours = std::find(known.begin(), known.end(), space) != known.end();
  if (colon != std::string_view::npos && !ours)
    return has_user_rule(name) ? OpKind::compute : OpKind::unknown;
  return tiny ? OpKind::tiny : OpKind::memory;
}

void add_operator(const at::RecordFunction& function, Frame& frame, double total, double tiny) {
  const bool leaf = frame.children == 0;
  const std::lock_guard lock(frame.thread->mutex);
  RowSum& sum =
      frame.thread
          ->sums[{function.name(),
                  frame.untold ? OpKind::unknown : kind_of(function.name(), leaf && total < tiny),
                  std::move(frame.shape),
                  frame.size,
                  frame.in_backward,
                  frame.recompute,
                  frame.across_devices,
                  frame.phase}];
  ++sum.calls;
  sum.self += std::max(0.0, total - frame.children);
  sum.flops += frame.flops;
  sum.bytes += frame.bytes;
}

void on_end(const at::RecordFunction& function, at::ObserverContext* begun) {
  if (begun == nullptr) return;
  auto& frame = static_cast<Frame&>(*begun);
  const auto end = Clock::now();
  innermost = frame.parent;
  if (const auto profile = running.load()) {
    if (frame.node) {
      add_gap(*frame.thread, end - frame.idle, frame.recompute, frame.phase);
    } else {
      add_operator(function, frame, seconds(end - frame.begin), profile->tiny.value);
    }
  }
  const auto left = Clock::now();
  if (Frame* parent = frame.parent; parent != nullptr) {
    parent->children += seconds(left - frame.entered);
    parent->idle = left;
    if (frame.recompute && parent->node) parent->recompute = true;
  } else if (frame.thread->idle) {
    frame.thread->idle = left;
  }
}

}  // namespace

struct OpProfiler::State {
  at::CallbackHandle handle{};
  std::shared_ptr<torch_adapter::Running> running;
};

OpProfiler::OpProfiler(Seconds tiny) : state_(std::make_unique<State>()) {
  auto fresh = std::make_shared<Running>();
  fresh->tiny = tiny;
  std::shared_ptr<Running> none;
  if (!running.compare_exchange_strong(none, fresh)) {
    throw std::logic_error("flopmeter::OpProfiler: another profile runs; stop it first");
  }
  state_->running = std::move(fresh);
  state_->handle = at::addGlobalCallback(
      at::RecordFunctionCallback(on_begin, on_end)
          .needsInputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

OpProfiler::~OpProfiler() {
  if (state_->running) static_cast<void>(stop());
}

OpProfile OpProfiler::stop() {
  OpProfile result;
  if (!state_->running) return result;
  at::removeCallback(state_->handle);
  running.store(nullptr);
  const auto profile = std::exchange(state_->running, nullptr);
  result.wall = {seconds(Clock::now() - profile->begin)};

  std::map<RowKey, RowSum> sums;
  std::map<torch_adapter::GapKey, torch_adapter::GapSum> gaps;
  const std::lock_guard lock(profile->mutex);
  for (const auto& thread : profile->threads) {
    const std::lock_guard thread_lock(thread->mutex);
    for (const auto& [key, sum] : thread->sums) {
      RowSum& all = sums[key];
      all.calls += sum.calls;
      all.self += sum.self;
      all.flops += sum.flops;
      all.bytes += sum.bytes;
    }
    for (const auto& [key, sum] : thread->gaps) {
      gaps[key].count += sum.count;
      gaps[key].seconds += sum.seconds;
    }
  }
  for (const auto& [key, sum] : gaps) {
    const auto& [recompute, pause, phase] = key;
    result.gaps.push_back({phase, recompute, pause, sum.count, {sum.seconds}});
  }
  result.on_device = profile->on_device.load(std::memory_order_relaxed);
  for (const auto& [key, sum] : sums) {
    const auto& [name, kind, shape, size, backward, recompute, across_devices, phase] = key;
    result.rows.push_back({.name = name,
                           .kind = kind,
                           .calls = sum.calls,
                           .self = {sum.self},
                           .elements = size > 0 ? std::int64_t{1} << (size - 1) : 0,
                           .backward = backward,
                           .phase = phase,
                           .recompute = recompute,
                           .across_devices = across_devices,
                           .shape = shape,
                           .flops = sum.flops,
                           .bytes = sum.bytes});
    result.calls += sum.calls;
    result.busy.value += sum.self;
  }
  std::sort(result.rows.begin(),
            result.rows.end(),
            [](const OpProfileRow& a, const OpProfileRow& b) { return a.self > b.self; });
  return result;
}

}  // namespace flopmeter
