// SPDX-License-Identifier: Apache-2.0
#include "backward_hook.h"

#include "device_clock.h"
#include "op_profiler.h"
#include "torch_version.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <atomic>
#include <thread>

namespace flopmeter::torch_adapter {
namespace {

struct HookState {
  void* context = nullptr;
  void (*begins)(void*) = nullptr;
  void (*ends)(void*) = nullptr;
  std::atomic<std::thread::id> thread = std::this_thread::get_id();
  std::atomic<bool> attached = true;
  std::atomic<bool> begun = false;
  bool running = false;  ///< used in `thread` only
  std::atomic<bool> running_on_device = false;
};
using SharedState = std::shared_ptr<HookState>;  // graphs may outlive the hook

/// On the node that created the hooked tensor: called when its gradient is known.
class GradientHook final : public torch::autograd::FunctionPreHook {
 public:
  explicit GradientHook(SharedState state) : state_(std::move(state)) {}

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& grads) override {
    if (state_->attached.load(std::memory_order_relaxed)) begin();
    return grads;
  }

  // A compiled backward runs without the hook.
#if FLOPMETER_TORCH_VERSION >= 207
  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& /*args*/) const override {}
#elif FLOPMETER_TORCH_VERSION >= 201
  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& /*args*/) override {}
#endif

 private:
  void begin() {
    state_->begun.store(true, std::memory_order_relaxed);
    if (std::this_thread::get_id() != state_->thread) {
      if (device_clock_is_open() && !state_->running_on_device.exchange(true)) report_end();
      return;
    }
    if (state_->running) return;
    state_->running = true;
    state_->begins(state_->context);
    torch::autograd::Engine::get_default_engine().queue_callback([state = state_] {
      state->running = false;
      if (state->attached.load(std::memory_order_relaxed)) state->ends(state->context);
    });
  }

  /// On a device, in a thread of the engine.  Callbacks run in the order in which they are queued:
  /// the first one before that of a reducer, the second one after it.
  void report_end() {
    host->device_event(FLOPMETER_BACKWARD_BEGIN, 0);
    torch::autograd::Engine::get_default_engine().queue_callback([state = state_] {
      host->device_event(FLOPMETER_GRAPH_END, 0);
      begin_profiled_wait();
      torch::autograd::Engine::get_default_engine().queue_callback([state] {
        end_profiled_wait();
        host->device_event(FLOPMETER_BACKWARD_END, 0);
        state->running_on_device = false;
      });
    });
  }

  SharedState state_;
};

HookState& to_state(void* hook) {
  return **static_cast<SharedState*>(hook);
}

}  // namespace

void* make_backward_hook(void* context, void (*begins)(void*), void (*ends)(void*)) {
  auto state = std::make_shared<HookState>();
  state->context = context;
  state->begins = begins;
  state->ends = ends;
  return new SharedState(std::move(state));
}

void free_backward_hook(void* hook) {
  to_state(hook).attached = false;
  delete static_cast<SharedState*>(hook);
}

int hook_tensor(void* hook, std::uintptr_t tensor) {
  auto* impl = reinterpret_cast<c10::TensorImpl*>(tensor);  // NOLINT: Python passes an address
  const at::Tensor variable{
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(impl)};
  const auto& node = variable.grad_fn();
  if (!node) return -1;
  const auto& state = *static_cast<SharedState*>(hook);
  state->thread = std::this_thread::get_id();
  state->running = false;  // a backward that failed did not report its end
  state->running_on_device = false;
  if (!variable.is_cpu()) set_training_device(variable.device());
  state->begun.store(false, std::memory_order_relaxed);
  node->add_pre_hook(std::make_unique<GradientHook>(state));
  return variable.is_cpu() ? 1 : 0;
}

int take_begun(void* hook) {
  return to_state(hook).begun.exchange(false, std::memory_order_relaxed) ? 1 : 0;
}

}  // namespace flopmeter::torch_adapter
