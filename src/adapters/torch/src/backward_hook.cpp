// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include <flopmeter/torch/backward_hook.h>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <atomic>
#include <thread>
#include <utility>

namespace flopmeter {

struct BackwardHook::State {
  std::function<void()> begins;
  std::function<void()> ends;
  std::atomic<std::thread::id> thread = std::this_thread::get_id();
  std::atomic<bool> watching = true;
  std::atomic<bool> begun = false;
  bool running = false;  ///< of `thread` only
};

namespace {

/// On the node whose output was watched: called when its gradient is there.
template <class State>
class Hook final : public torch::autograd::FunctionPreHook {
 public:
  explicit Hook(std::shared_ptr<State> state) : state_(std::move(state)) {}

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& grads) override {
    if (state_->watching.load(std::memory_order_relaxed)) begin();
    return grads;
  }

#if FLOPMETER_TORCH_VERSION >= 207
  /// A compiled backward goes without it.
  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& /*args*/) const override {}
#elif FLOPMETER_TORCH_VERSION >= 201
  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& /*args*/) override {}
#endif

 private:
  void begin() {
    state_->begun.store(true, std::memory_order_relaxed);
    if (std::this_thread::get_id() != state_->thread || state_->running) return;
    state_->running = true;
    state_->begins();
    torch::autograd::Engine::get_default_engine().queue_callback([state = state_] {
      state->running = false;
      if (state->watching.load(std::memory_order_relaxed)) state->ends();
    });
  }

  std::shared_ptr<State> state_;
};

}  // namespace

BackwardHook::BackwardHook(std::function<void()> begins, std::function<void()> ends)
    : state_(std::make_shared<State>()) {
  state_->begins = std::move(begins);
  state_->ends = std::move(ends);
}

BackwardHook::~BackwardHook() {
  state_->watching = false;
}

std::optional<bool> BackwardHook::watch(std::uintptr_t tensor) {
  auto* impl = reinterpret_cast<c10::TensorImpl*>(tensor);  // NOLINT: as Python hands it over
  const at::Tensor variable{
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(impl)};
  const auto& node = variable.grad_fn();
  if (!node) return std::nullopt;
  state_->thread = std::this_thread::get_id();
  state_->running = false;  // one that failed does not report its end
  state_->begun.store(false, std::memory_order_relaxed);
  node->add_pre_hook(std::make_unique<Hook<State>>(state_));
  return variable.is_cpu();
}

bool BackwardHook::take_begun() {
  return state_->begun.exchange(false, std::memory_order_relaxed);
}

}  // namespace flopmeter
