// SPDX-License-Identifier: Apache-2.0
//
// Collectives in torch's dispatcher: every backend of c10d is called through an operator, by DDP's
// reducer, FSDP, and Python.  The call starts the collective, and the future of the Work that it
// returns completes with it.  On a GPU that future completes when the work is queued: there, marks
// time how long the stream waits for the collective.
#include "collectives.h"

#include "device_clock.h"
#include "interceptor.h"
#include "op_profiler.h"

#include <array>

#if FLOPMETER_TORCH_VERSION >= 200 && __has_include(<torch/csrc/distributed/c10d/Work.hpp>)
#define FLOPMETER_HAS_C10D
#include <torch/csrc/distributed/c10d/Work.hpp>
#endif

namespace flopmeter::torch_adapter {
namespace {

constinit thread_local bool own_collective = false;

}  // namespace

OwnCollective::OwnCollective() {
  own_collective = true;
}
OwnCollective::~OwnCollective() {
  own_collective = false;
}

#ifdef FLOPMETER_HAS_C10D
namespace {

constexpr std::array<const char*, 17> collectives{"c10d::allreduce_",
                                                  "c10d::allreduce_coalesced_",
                                                  "c10d::allgather_",
                                                  "c10d::_allgather_base_",
                                                  "c10d::allgather_coalesced_",
                                                  "c10d::allgather_into_tensor_coalesced_",
                                                  "c10d::reduce_scatter_",
                                                  "c10d::_reduce_scatter_base_",
                                                  "c10d::reduce_scatter_tensor_coalesced_",
                                                  "c10d::broadcast_",
                                                  "c10d::reduce_",
                                                  "c10d::gather_",
                                                  "c10d::scatter_",
                                                  "c10d::alltoall_",
                                                  "c10d::alltoall_base_",
                                                  "c10d::barrier",
                                                  "c10d::monitored_barrier_"};
constexpr std::array<const char*, 3> messages{
    "c10d::send", "c10d::recv_", "c10d::recv_any_source_"};

/// While alive, the host waits for a message.
struct HostWait {
  HostWait() { host->collective_began(); }
  ~HostWait() { host->collective_ended(); }
};

/// While alive, the current stream is made to wait for a collective.
struct StreamWait {
  StreamWait() {
    host->device_event(FLOPMETER_COLLECTIVE_WAIT_BEGIN, 0);
    begin_profiled_wait();
  }
  ~StreamWait() {
    end_profiled_wait();
    host->device_event(FLOPMETER_COLLECTIVE_WAIT_END, 0);
  }
};

/// A work whose wait() runs in a `Scope`.  A message between two ranks has no future, and a
/// collective on a device makes the stream wait, not the host.
template <class Scope>
class TimedWait final : public c10d::Work {
 public:
  explicit TimedWait(c10::intrusive_ptr<c10d::Work> work)
      : Work(-1, work->retrieveOpType()), work_(std::move(work)) {}

  bool isCompleted() override { return work_->isCompleted(); }
  bool isSuccess() const override { return work_->isSuccess(); }
  std::exception_ptr exception() const override { return work_->exception(); }
  int sourceRank() const override { return work_->sourceRank(); }
  std::vector<at::Tensor> result() override { return work_->result(); }
  void synchronize() override { work_->synchronize(); }
  void abort() override { work_->abort(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return work_->getFuture(); }
#if FLOPMETER_TORCH_VERSION >= 206
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override {
    return work_->getFutureResult();
  }
#endif
#if FLOPMETER_TORCH_VERSION >= 209
  void blockCurrentStream() override {
    const Scope scope;
    work_->blockCurrentStream();
  }
#endif
#if FLOPMETER_TORCH_VERSION >= 201
  float getDuration() const override {
    return work_->getDuration();
  }
#endif
#if FLOPMETER_TORCH_VERSION >= 202
  std::uint64_t getSequencenumber() const override {
    return work_->getSequencenumber();
  }
#endif
  bool wait(std::chrono::milliseconds timeout) override {
    const Scope scope;
    return work_->wait(timeout);
  }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
};

template <class Scope>
void time_wait(c10::IValue& result) {
  if (!result.isCustomClass()) return;
  if (auto work = result.toCustomClass<c10d::Work>()) {
    result = c10::IValue(c10::static_intrusive_pointer_cast<c10d::Work>(
        c10::make_intrusive<TimedWait<Scope>>(std::move(work))));
  }
}

/// Whether the collective runs on the current stream, not on a separate one.
bool is_synchronous(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const auto index = op.schema().argumentIndexWithName("asyncOp");
  if (!index) return false;
  const c10::IValue& value = stack[stack.size() - op.schema().arguments().size() + *index];
  return value.isBool() && !value.toBool();
}

void run_on_device(const c10::OperatorHandle& op,
                   c10::DispatchKeySet below,
                   torch::jit::Stack* stack) {
  host->device_event(FLOPMETER_COLLECTIVE, 0);
  if (is_synchronous(op, *stack)) {
    const StreamWait scope;
    op.redispatchBoxed(below, stack);
  } else {
    op.redispatchBoxed(below, stack);
  }
  if (!op.schema().returns().empty()) time_wait<StreamWait>(stack->back());
}

/// Ends the collective when the operation that `result` stands for has completed, or immediately if
/// that cannot be known.
void end_with(const c10::IValue* result) {
  try {
    if (result != nullptr && result->isCustomClass()) {
      const auto work = result->toCustomClass<c10d::Work>();
      if (const auto future = work ? work->getFuture() : nullptr)
        return on_completion(*future, [] { host->collective_ended(); });
    }
  } catch (...) {  // a backend without futures
  }
  host->collective_ended();
}

void timed(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::DispatchKeySet below = keys & keys_below;
  const bool on_device = below.highestPriorityTypeId() != c10::DispatchKey::CPU;
  if (on_device && device_clock_is_open()) return run_on_device(op, below, stack);
  if (on_device || own_collective) return op.redispatchBoxed(below, stack);
  host->collective_began();
  try {
    op.redispatchBoxed(below, stack);
  } catch (...) {
    host->collective_ended();
    throw;
  }
  end_with(op.schema().returns().empty() ? nullptr : &stack->back());
}

void timed_message(const c10::OperatorHandle& op,
                   c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) {
  const c10::DispatchKeySet below = keys & keys_below;
  const bool on_device = below.highestPriorityTypeId() != c10::DispatchKey::CPU;
  if (on_device && device_clock_is_open()) return run_on_device(op, below, stack);
  op.redispatchBoxed(below, stack);
  if (!on_device) time_wait<HostWait>(stack->back());
}

template <std::size_t count>
void register_all(torch::Library& library,
                  const std::array<const char*, count>& names,
                  torch::CppFunction (*make)()) {
  for (const char* name : names) {
    const auto op = c10::Dispatcher::singleton().findSchema({name, ""});
    if (op && !op->hasKernelForDispatchKey(interception_key)) library.impl(name, make());
  }
}

}  // namespace

void intercept_collectives() {
  static auto& library = *new torch::Library(
      torch::Library::IMPL, "c10d", interception_key, __FILE__, __LINE__);  // never freed
  register_all(
      library, collectives, [] { return torch::CppFunction::makeFromBoxedFunction<&timed>(); });
  register_all(library, messages, [] {
    return torch::CppFunction::makeFromBoxedFunction<&timed_message>();
  });
}
#else
void intercept_collectives() {}
#endif

}  // namespace flopmeter::torch_adapter
