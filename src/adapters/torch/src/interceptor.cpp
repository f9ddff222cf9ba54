// SPDX-License-Identifier: Apache-2.0
#include "interceptor.h"

#include "collectives.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <chrono>
#include <map>
#include <mutex>
#include <set>

namespace flopmeter::torch_adapter {
namespace {

/// Never freed: other threads may still run operators when the process exits.
struct Registry {
  std::mutex mutex;
  std::map<std::string, torch::Library*> libraries;  ///< by namespace
  std::set<std::string> intercepted;
};
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

torch::Library& library_for(const std::string& space) {
  auto& library = registry().libraries[space];
  if (library == nullptr) {
    library = new torch::Library(torch::Library::IMPL, space, interception_key, __FILE__, __LINE__);
  }
  return *library;
}

bool is_intercepted(const c10::OperatorName& name) {
  return registry().intercepted.contains(full_name(name));
}

/// Runs any operator: the stack holds the arguments, then the results.
class BoxedWrapper final : public c10::OperatorKernel {
 public:
  explicit BoxedWrapper(const FlopmeterOp& op) : op_(&op) {}

  void operator()(const c10::OperatorHandle& handle,
                  c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
    const c10::DispatchKeySet below = keys & keys_below;
    if (!is_counted(below)) {
      if (!is_unsupported(below)) return handle.redispatchBoxed(below, stack);
      const CountedOpScope scope;
      handle.redispatchBoxed(below, stack);
      return host->add_unsupported(op_);
    }
    // The call takes the arguments from the stack, so they are copied first: slower than a typed
    // wrapper.
    const std::size_t count = handle.schema().arguments().size();
    const std::vector<c10::IValue> args(stack->end() - static_cast<std::ptrdiff_t>(count),
                                        stack->end());
    const CountedOpScope scope;
    handle.redispatchBoxed(below, stack);
    const std::size_t results = handle.schema().returns().size();
    count_boxed(args, results == 0 ? nullptr : &(*stack)[stack->size() - results]);
  }

 private:
  void count_boxed(const std::vector<c10::IValue>& args, const c10::IValue* result) noexcept try {
    BoxedScratch scratch;
    std::vector<FlopmeterArg> list(args.size());
    c10::DeviceType device = c10::DeviceType::CPU;
    for (std::size_t i = args.size(); i-- > 0;) {
      list[i] = boxed_arg(args[i], scratch);
      if (args[i].isTensor() && args[i].toTensor().defined())
        device = args[i].toTensor().device().type();
    }
    count_call(*op_,
               device,
               list.data(),
               list.size(),
               result != nullptr ? boxed_arg(*result, scratch) : no_arg());
  } catch (...) {  // a tensor without plain sizes
    host->add_unsupported(op_);
  }

  const FlopmeterOp* op_;
};

/// While alive, this thread's operators are counted or not, regardless of other settings.
class ForcedCounting {
 public:
  explicit ForcedCounting(bool counted)
      : depth_(std::exchange(thread_context.depth, counted ? 0 : 1)) {
    counting_users.fetch_add(1);
  }
  ~ForcedCounting() {
    counting_users.fetch_sub(1);
    thread_context.depth = depth_;
  }
  ForcedCounting(const ForcedCounting&) = delete;
  ForcedCounting& operator=(const ForcedCounting&) = delete;
  ForcedCounting(ForcedCounting&&) = delete;
  ForcedCounting& operator=(ForcedCounting&&) = delete;

 private:
  int depth_;
};

}  // namespace

std::string full_name(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

bool can_intercept(const c10::OperatorHandle& handle) {
  // The operators that a composite is made of are counted themselves.
  return !handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
         !handle.hasKernelForDispatchKey(interception_key);
}

void record_interception(const c10::OperatorName& name) {
  registry().intercepted.insert(full_name(name));
}

void register_boxed(const c10::OperatorHandle& handle, FlopmeterOp& op) {
  const c10::OperatorName& name = handle.operator_name();
  library_for(name.name.substr(0, name.name.find("::")))
      .impl(full_name(name).c_str(),
            torch::CppFunction::makeFromBoxedFunctor(std::make_unique<BoxedWrapper>(op)));
  record_interception(name);
}

void install() {
  const std::lock_guard lock(registry().mutex);
  register_typed(library_for("aten"));
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (is_intercepted(name)) continue;
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    FlopmeterOp* op = host->find_op(full_name(name).c_str());
    if (handle && op != nullptr && can_intercept(*handle)) register_boxed(*handle, *op);
  }
  intercept_collectives();
}

int intercept(const char* name, FlopmeterOp* op) {
  const std::lock_guard lock(registry().mutex);
  bool found = false;
  for (const c10::OperatorName& each : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto handle = c10::Dispatcher::singleton().findSchema(each);
    if (!handle || (each.name != name && full_name(each) != name)) continue;
    found = true;
    if (is_intercepted(each)) continue;
    if (!can_intercept(*handle)) return FLOPMETER_COMPOSITE_OP;
    register_boxed(*handle, *op);
  }
  return found ? FLOPMETER_INTERCEPTED : FLOPMETER_NO_SUCH_OP;
}

void list_intercepted(void* context, void (*add)(void*, const char*)) {
  const std::lock_guard lock(registry().mutex);
  for (const std::string& name : registry().intercepted) add(context, name.c_str());
}

double run_matmuls(
    std::int64_t rows, std::int64_t inner, std::int64_t columns, std::int32_t calls, int counted) {
  const at::Tensor a = at::ones({rows, inner});
  const at::Tensor b = at::ones({inner, columns});
  at::Tensor out = at::empty({rows, columns});
  const ForcedCounting scope(counted != 0);
  const auto begin = std::chrono::steady_clock::now();
  for (std::int32_t i = 0; i < calls; ++i) at::mm_out(out, a, b);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace flopmeter::torch_adapter
