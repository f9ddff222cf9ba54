// SPDX-License-Identifier: Apache-2.0
#include "interceptor.h"

#include "collectives.h"
#include "starts.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <atomic>
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

/// Operators that were defined and not looked at yet.  The dispatcher calls the listener under its
/// own mutex, so that it only collects names.
struct NewOps final : c10::OpRegistrationListener {
  std::mutex mutex;
  std::vector<c10::OperatorName> names;
  std::atomic<bool> any{false};

  void onOperatorRegistered(const c10::OperatorHandle& handle) override {
    const std::lock_guard lock(mutex);
    names.push_back(handle.operator_name());
    any.store(true, std::memory_order_release);
  }
  void onOperatorDeregistered(const c10::OperatorHandle& /*handle*/) override {}

  std::vector<c10::OperatorName> take() {
    const std::lock_guard lock(mutex);
    any.store(false, std::memory_order_relaxed);
    return std::exchange(names, {});
  }
};
/// Owned by the dispatcher, which keeps it until the process ends.
NewOps* new_ops = nullptr;

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
    const std::uint8_t openness = __atomic_load_n(&op_->openness, __ATOMIC_ACQUIRE);
    if (openness != FLOPMETER_CLOSED) return run_open(handle, below, stack, openness);
    if (!is_counted(below)) {
      if (!is_unsupported(below)) return handle.redispatchBoxed(below, stack);
      const CountedOpScope scope;
      handle.redispatchBoxed(below, stack);
      return add_unsupported(op_);
    }
    // The call takes the arguments from the stack, so they are copied first: slower than a typed
    // wrapper.
    const std::size_t count = handle.schema().arguments().size();
    const std::vector<c10::IValue> args(stack->end() - static_cast<std::ptrdiff_t>(count),
                                        stack->end());
    const CountedOpScope scope;
    handle.redispatchBoxed(below, stack);
    const std::size_t results = handle.schema().returns().size();
    count_boxed(handle.schema(), args, results == 0 ? nullptr : &(*stack)[stack->size() - results]);
  }

 private:
  /// Operators inside are counted, also if a compiled graph calls it.
  void run_open(const c10::OperatorHandle& handle,
                c10::DispatchKeySet below,
                torch::jit::Stack* stack,
                std::uint8_t openness) {
    struct Opened {
      bool by_graph = thread_context.in_graph && thread_context.depth == 1;
      Opened() {
        if (by_graph) thread_context.depth = 0;
      }
      ~Opened() {
        if (by_graph) thread_context.depth = 1;
      }
    } const scope;
    const bool reports =
        openness == FLOPMETER_MULTIPLIES && (is_counted(below) || is_unsupported(below));
    const unsigned before = thread_context.calls;
    handle.redispatchBoxed(below, stack);
    if (reports && thread_context.calls == before) add_unsupported(op_);
  }

  void count_boxed(const c10::FunctionSchema& schema,
                   const std::vector<c10::IValue>& args,
                   const c10::IValue* result) noexcept try {
    BoxedScratch scratch;
    std::vector<FlopmeterArg> list(args.size());
    c10::DeviceType device = c10::DeviceType::CPU;
    for (std::size_t i = args.size(); i-- > 0;) {
      list[i] = boxed_arg(args[i], scratch);
      if (args[i].isTensor() && args[i].toTensor().defined())
        device = args[i].toTensor().device().type();
    }
    // When the wrapper was registered the operator may not have been defined.
    std::call_once(bound_, [&] { places_ = places_of(*op_, schema); });
    const std::vector<FlopmeterArg> in_order = arranged(places_, list);
    std::vector<const void*> starts(in_order.size());
    for (std::size_t i = 0; i < std::min(args.size(), places_.size()); ++i) {
      if (places_[i] >= 0 && args[i].isTensor() && args[i].toTensor().defined())
        starts[static_cast<std::size_t>(places_[i])] =
            as_starts(*args[i].toTensor().unsafeGetTensorImpl());
    }
    count_call(*op_,
               device,
               in_order.data(),
               in_order.size(),
               result != nullptr ? boxed_arg(*result, scratch) : no_arg(),
               FLOPMETER_CURRENT_PASS,
               FLOPMETER_CURRENT_MODULE,
               starts.data());
  } catch (...) {  // a tensor without plain sizes
    add_unsupported(op_);
  }

  const FlopmeterOp* op_;
  std::once_flag bound_;
  std::vector<std::int32_t> places_;
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

FlopmeterOp* find_op(const c10::OperatorHandle& handle) {
  std::vector<const char*> parameters;
  for (const auto& argument : handle.schema().arguments())
    parameters.push_back(argument.name().c_str());
  return host->find_op(
      full_name(handle.operator_name()).c_str(), parameters.data(), parameters.size());
}

std::vector<std::int32_t> places_of(const FlopmeterOp& op, const c10::FunctionSchema& schema) {
  std::vector<const char*> parameters;
  for (const auto& argument : schema.arguments()) parameters.push_back(argument.name().c_str());
  std::vector<std::int32_t> places(parameters.size());
  host->find_places(&op, parameters.data(), parameters.size(), places.data());
  return places;
}

std::vector<FlopmeterArg> arranged(const std::vector<std::int32_t>& places,
                                   const std::vector<FlopmeterArg>& args) {
  std::size_t count = 0;
  for (const std::int32_t place : places)
    count = std::max(count, static_cast<std::size_t>(place + 1));
  std::vector<FlopmeterArg> result(count, no_arg());
  for (std::size_t i = 0; i < std::min(args.size(), places.size()); ++i) {
    // Several parameters may have one place; those that are absent leave it to the others.
    if (places[i] >= 0 && args[i].kind != FLOPMETER_NO_ARG)
      result[static_cast<std::size_t>(places[i])] = args[i];
  }
  return result;
}

namespace {

void register_wrapper(const c10::OperatorName& name, const FlopmeterOp& op) {
  library_for(name.name.substr(0, name.name.find("::")))
      .impl(full_name(name).c_str(),
            torch::CppFunction::makeFromBoxedFunctor(std::make_unique<BoxedWrapper>(op)));
  record_interception(name);
}

/// Registers the wrappers of libraries that are not loaded yet: the dispatcher keeps them until the
/// operators are defined.
void register_undefined() {
  std::vector<std::string> names;
  host->list_library_ops(&names, [](void* list, const char* name) {
    static_cast<std::vector<std::string>*>(list)->emplace_back(name);
  });
  for (const std::string& name : names) {
    const c10::OperatorName undefined(name, "");
    if (is_intercepted(undefined) || c10::Dispatcher::singleton().findOp(undefined)) continue;
    if (FlopmeterOp* op = host->find_op(name.c_str(), nullptr, 0)) register_wrapper(undefined, *op);
  }
}

/// Intercepts an operator if it is counted; its entry then, else null.
FlopmeterOp* intercept_if_counted(const c10::OperatorName& name) {
  if (is_intercepted(name)) return nullptr;
  const auto handle = c10::Dispatcher::singleton().findSchema(name);
  if (!handle) return nullptr;
  FlopmeterOp* op = find_op(*handle);
  if (op == nullptr || !can_intercept(*handle)) return nullptr;
  register_wrapper(name, *op);
  return op;
}

}  // namespace

void install() {
  const std::lock_guard lock(registry().mutex);
  register_typed(library_for("aten"));
  auto listener = std::make_unique<NewOps>();
  new_ops = listener.get();
  // The listener is called for all operators that exist.  Its registration is never ended.
  new c10::RegistrationHandleRAII(
      c10::Dispatcher::singleton().addRegistrationListener(std::move(listener)));
  for (const c10::OperatorName& name : new_ops->take()) intercept_if_counted(name);
  register_undefined();
  intercept_collectives();
}

void find_new_ops() {
  if (!new_ops->any.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(registry().mutex);
  for (const c10::OperatorName& name : new_ops->take()) {
    // Calls since its definition were not counted.  At least one is assumed of attention, but not
    // of all operators of a library whose names state that they multiply.
    const FlopmeterOp* op = intercept_if_counted(name);
    if (op != nullptr && op->openness == FLOPMETER_CLOSED) host->add_unsupported(op);
  }
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
    register_wrapper(each, *op);
  }
  return found ? FLOPMETER_INTERCEPTED : FLOPMETER_NO_SUCH_OP;
}

void open_op(const char* name, const FlopmeterOp* op) {
  const std::lock_guard lock(registry().mutex);
  const std::string full = name;
  const std::size_t dot = full.find('.', full.find("::"));
  const c10::OperatorName wanted(full.substr(0, dot),
                                 dot == std::string::npos ? "" : full.substr(dot + 1));
  const auto handle = c10::Dispatcher::singleton().findSchema(wanted);
  if (!handle || is_intercepted(wanted) || !can_intercept(*handle)) return;
  register_wrapper(wanted, *op);
}

int begin_call(int is_graph) {
  if (counting_users.load(std::memory_order_relaxed) == 0 || thread_context.depth != 0) return 0;
  thread_context.depth = 1;
  thread_context.in_graph = is_graph != 0;
  return 1;
}

void end_call() {
  thread_context.depth = 0;
  thread_context.in_graph = false;
}

int inside_call() {
  return thread_context.depth != 0 ? 1 : 0;
}

std::uint32_t module_now() {
  return current_module(current_pass());
}

void count_outside(const FlopmeterOp* op,
                   const FlopmeterArg* args,
                   std::size_t arg_count,
                   const void* const* tensors,
                   const FlopmeterArg* output,
                   std::int32_t device,
                   std::uint8_t pass,
                   std::uint32_t module) {
  if (module_users.load(std::memory_order_relaxed) == 0) module = FLOPMETER_MODULES_OFF;
  count_call(*op,
             static_cast<c10::DeviceType>(device),
             args,
             arg_count,
             *output,
             static_cast<FlopmeterPass>(pass),
             module,
             tensors);
}

std::int32_t describe_tensor(std::uintptr_t tensor, FlopmeterArg* arg) {
  const auto* impl = reinterpret_cast<const c10::TensorImpl*>(tensor);  // NOLINT: an address
  const auto sizes = impl->sizes();
  const Element element =
      elements[static_cast<std::size_t>(c10::typeMetaToScalarType(impl->dtype()))];
  *arg = no_arg();
  arg->kind = FLOPMETER_TENSOR;
  arg->dtype = element.dtype;
  arg->is_complex = element.is_complex;
  arg->rank = static_cast<std::int32_t>(sizes.size());
  arg->values = sizes.data();
  return static_cast<std::int32_t>(impl->device_type());
}

void list_intercepted(void* context, void (*add)(void*, const char*)) {
  const std::lock_guard lock(registry().mutex);
  for (const std::string& name : registry().intercepted) add(context, name.c_str());
}

double run_matmuls(
    std::int64_t rows, std::int64_t inner, std::int64_t columns, std::int32_t calls, int counted) {
  // The program's dispatch modes and profilers must not see calls that it did not make.
  const c10::impl::ExcludeDispatchKeyGuard no_modes(
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot}));
  const at::DisableRecordFunctionGuard no_profiler;
  const at::Tensor a = at::ones({rows, inner});
  const at::Tensor b = at::ones({inner, columns});
  at::Tensor out = at::empty({rows, columns});
  const ForcedCounting scope(counted != 0);
  const auto begin = std::chrono::steady_clock::now();
  for (std::int32_t i = 0; i < calls; ++i) at::mm_out(out, a, b);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace flopmeter::torch_adapter
