// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/torch/survey.h>

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

namespace flopmeter {
namespace torch_adapter {

// name, log2 of the elements, whether inside backward, whether tiny
using SurveyKey = std::tuple<std::string, int, bool, bool>;
struct SurveySum {
  std::uint64_t calls = 0;
  double self = 0;
};

/// What one thread saw.
struct ThreadSurvey {
  std::mutex mutex;  // its own thread's, except when the survey ends
  std::map<SurveyKey, SurveySum> sums;
};

struct Running {
  std::mutex mutex;
  std::vector<std::shared_ptr<ThreadSurvey>> threads;
  Seconds tiny;
};

}  // namespace torch_adapter

namespace {

using torch_adapter::Running;
using torch_adapter::SurveyKey;
using torch_adapter::SurveySum;
using torch_adapter::ThreadSurvey;
using Clock = std::chrono::steady_clock;

std::atomic<std::shared_ptr<Running>> running;

/// An operator on this thread's stack.
struct Frame : at::ObserverContext {
  Clock::time_point begin;
  Frame* parent = nullptr;
  double children = 0;
  int size = 0;
  bool node = false;
  bool in_backward = false;
  std::shared_ptr<ThreadSurvey> thread;
};
thread_local Frame* innermost = nullptr;

std::shared_ptr<ThreadSurvey> this_thread(const std::shared_ptr<Running>& survey) {
  thread_local std::weak_ptr<Running> seen;
  thread_local std::shared_ptr<ThreadSurvey> mine;
  if (seen.lock() != survey) {
    seen = survey;
    mine = std::make_shared<ThreadSurvey>();
    const std::lock_guard lock(survey->mutex);
    survey->threads.push_back(mine);
  }
  return mine;
}

int log2_elements(const at::RecordFunction& function) {
  std::int64_t largest = 0;
  for (const c10::IValue& input : function.inputs()) {
    if (!input.isTensor() || !input.toTensor().defined() || input.toTensor().is_nested()) continue;
    if (input.toTensor().unsafeGetTensorImpl()->has_symbolic_sizes_strides()) continue;
    largest = std::max(largest, input.toTensor().numel());
  }
  return largest > 0 ? std::bit_width(static_cast<std::uint64_t>(largest)) : 0;
}

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& function) {
  const auto survey = running.load();
  if (!survey) return nullptr;
  auto frame = std::make_unique<Frame>();
  frame->node = function.scope() == at::RecordScope::BACKWARD_FUNCTION;
  frame->in_backward = frame->node || (innermost != nullptr && innermost->in_backward);
  if (!frame->node) frame->size = log2_elements(function);
  frame->parent = innermost;
  frame->thread = this_thread(survey);
  innermost = frame.get();
  frame->begin = Clock::now();
  return frame;
}

void on_end(const at::RecordFunction& function, at::ObserverContext* begun) {
  if (begun == nullptr) return;
  auto& frame = static_cast<Frame&>(*begun);
  const double total = std::chrono::duration<double>(Clock::now() - frame.begin).count();
  innermost = frame.parent;
  if (frame.parent != nullptr) frame.parent->children += total;
  const auto survey = running.load();
  if (frame.node || !survey) return;
  const double self = std::max(0.0, total - frame.children);
  const bool leaf = frame.children == 0;
  const std::lock_guard lock(frame.thread->mutex);
  SurveySum& sum = frame.thread->sums[{
      function.name(), frame.size, frame.in_backward, leaf && total < survey->tiny.value}];
  ++sum.calls;
  sum.self += self;
}

/// Operators of torch itself without a rule bear no FLOPs; those of other libraries may.
OpKind kind_of(std::string_view name, bool tiny) {
  if (find_op_rule(name) != nullptr) return OpKind::priced;
  constexpr std::array known = {
      "aten", "prim", "prims", "profiler", "c10d", "torch", "autograd", "static_runtime"};
  const std::size_t colon = name.find("::");
  const std::string_view space = name.substr(0, colon);
  const bool ours = std::find(known.begin(), known.end(), space) != known.end();
  if (colon != std::string_view::npos && !ours) return OpKind::unknown;
  return tiny ? OpKind::tiny : OpKind::memory;
}

}  // namespace

struct Survey::State {
  at::CallbackHandle handle{};
  std::shared_ptr<torch_adapter::Running> running;
  std::chrono::steady_clock::time_point begin;
};

Survey::Survey(Seconds tiny) : state_(std::make_unique<State>()) {
  auto fresh = std::make_shared<Running>();
  fresh->tiny = tiny;
  std::shared_ptr<Running> none;
  if (!running.compare_exchange_strong(none, fresh)) {
    throw std::logic_error("flopmeter::Survey: another survey runs; stop it first");
  }
  state_->running = std::move(fresh);
  state_->handle = at::addGlobalCallback(
      at::RecordFunctionCallback(on_begin, on_end)
          .needsInputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  state_->begin = Clock::now();
}

Survey::~Survey() {
  if (state_->running) static_cast<void>(stop());
}

SurveyResult Survey::stop() {
  SurveyResult result;
  if (!state_->running) return result;
  result.wall = {std::chrono::duration<double>(Clock::now() - state_->begin).count()};
  at::removeCallback(state_->handle);
  running.store(nullptr);
  const auto survey = std::exchange(state_->running, nullptr);

  std::map<SurveyKey, SurveySum> sums;
  const std::lock_guard lock(survey->mutex);
  for (const auto& thread : survey->threads) {
    const std::lock_guard thread_lock(thread->mutex);
    for (const auto& [key, sum] : thread->sums) {
      sums[key].calls += sum.calls;
      sums[key].self += sum.self;
    }
  }
  for (const auto& [key, sum] : sums) {
    const auto& [name, size, backward, tiny] = key;
    result.rows.push_back({.name = name,
                           .kind = kind_of(name, tiny),
                           .calls = sum.calls,
                           .self = {sum.self},
                           .elements = size > 0 ? std::int64_t{1} << (size - 1) : 0,
                           .backward = backward});
    result.calls += sum.calls;
    result.busy.value += sum.self;
  }
  std::sort(result.rows.begin(), result.rows.end(), [](const SurveyRow& a, const SurveyRow& b) {
    return a.self > b.self;
  });
  return result;
}

Seconds SurveyResult::self_time(OpKind kind) const {
  Seconds sum;
  for (const SurveyRow& row : rows) {
    if (row.kind == kind) sum.value += row.self.value;
  }
  return sum;
}

}  // namespace flopmeter
