// SPDX-License-Identifier: Apache-2.0
#include "interceptor.h"

#include "collectives.h"
#include "snapshot.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>

namespace flopmeter {
namespace torch_adapter {
namespace {

/// Leaked on purpose: no deregistration while other threads may still run at exit.
struct Registry {
  std::mutex mutex;
  std::map<std::string, torch::Library*> libraries;  ///< by namespace
  std::set<std::string> intercepted;
  std::set<std::string> occupied;  ///< somebody else sits on our key
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

std::optional<OpCost> flop_cost(const OpEntry& entry, const OpCall& call) {
  if (const UserRule* user = entry.user.load(std::memory_order_acquire)) [[unlikely]] {
    const auto work = (*user)(call);
    if (!work) return std::nullopt;
    return OpCost{.executed = *work, .model = *work, .bytes = {}};
  }
  return entry.rule != nullptr ? entry.rule->flop_cost(call) : std::nullopt;
}

/// Runs any operator: the stack holds the arguments, then the results.
class BoxedWrapper final : public c10::OperatorKernel {
 public:
  explicit BoxedWrapper(const OpEntry& entry) : entry_(&entry) {}

  void operator()(const c10::OperatorHandle& op,
                  c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
    const c10::DispatchKeySet below = keys & keys_below;
    if (!counts_here(below)) {
      if (!hides_work(below)) return op.redispatchBoxed(below, stack);
      const Inside inside;
      op.redispatchBoxed(below, stack);
      return add_unsupported(*entry_);
    }
    // The arguments leave the stack in the call, so their handles are kept: slow beside a typed
    // wrapper.
    const std::size_t count = op.schema().arguments().size();
    const std::vector<c10::IValue> args(stack->end() - static_cast<std::ptrdiff_t>(count),
                                        stack->end());
    const Inside inside;
    op.redispatchBoxed(below, stack);
    add(args,
         op.schema().returns().empty() ? nullptr
                                       : &(*stack)[stack->size() - op.schema().returns().size()]);
  }

 private:
  void add(const std::vector<c10::IValue>& args, const c10::IValue* result) noexcept try {
    BoxedScratch scratch;
    std::vector<Arg> list(args.size());
    c10::DeviceType device = c10::DeviceType::CPU;
    for (std::size_t i = args.size(); i-- > 0;) {
      list[i] = boxed_arg(args[i], scratch);
      if (args[i].isTensor() && args[i].toTensor().defined())
        device = args[i].toTensor().device().type();
    }
    add_call(*entry_,
              device,
              {.args = list, .output = result != nullptr ? boxed_arg(*result, scratch) : Arg{}});
  } catch (...) {
    add_unsupported(*entry_);
  }

  const OpEntry* entry_;
};

/// While alive, this thread's operators count (or do not), unseen by any counter.
class Trial {
 public:
  explicit Trial(bool counted) : depth_(std::exchange(context.depth, counted ? 0 : 1)) {
    counting_users.fetch_add(1);
  }
  ~Trial() {
    counting_users.fetch_sub(1);
    context.depth = depth_;
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  Trial(Trial&&) = delete;
  Trial& operator=(Trial&&) = delete;
  [[nodiscard]] const ThreadCounters& counters() const { return scratch_.counters(); }

 private:
  ScratchCounters scratch_;
  int depth_;
};

Result<void> self_test() {
  const at::Tensor a = at::ones({2, 3});
  const at::Tensor b = at::ones({3, 4});
  const Trial scratch(true);
  at::mm(a, b);
  std::uint64_t counted = 0;
  for (const auto& dtype : scratch.counters().totals) {
    for (const Cell& cell : dtype) counted += cell.executed.read();
  }
  if (counted == 48) return {};
  return Error{
      ErrorCode::unsupported,
      "the torch adapter counted " + std::to_string(counted) +
          " FLOPs for a 2x3 by 3x4 product instead of 48: it was built for torch " TORCH_VERSION
          "; build it again for the torch that runs"};
}

Result<void> install() {
  {
    const std::lock_guard lock(registry().mutex);
    register_typed(library_for("aten"));
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
      const OpRule* rule = find_op_rule(full_name(name));
      if (rule == nullptr || rule->offline || is_intercepted(name)) continue;
      const auto op = c10::Dispatcher::singleton().findSchema(name);
      OpEntry* entry = find_or_add_op(full_name(name));
      if (op && entry != nullptr && can_intercept(*op)) register_boxed(*op, *entry);
    }
    watch_collectives();
  }
  return self_test();
}

}  // namespace

std::string full_name(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

bool can_intercept(const c10::OperatorHandle& op) {
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd))
    return false;  // its leaves count
  if (!op.hasKernelForDispatchKey(interception_key)) return true;
  registry().occupied.insert(full_name(op.operator_name()));
  return false;
}

void note_interception(const c10::OperatorName& name) {
  registry().intercepted.insert(full_name(name));
}

bool is_intercepted(const c10::OperatorName& name) {
  return registry().intercepted.contains(full_name(name));
}

void register_boxed(const c10::OperatorHandle& op, OpEntry& entry) {
  const c10::OperatorName& name = op.operator_name();
  library_for(name.name.substr(0, name.name.find("::")))
      .impl(full_name(name).c_str(),
            torch::CppFunction::makeFromBoxedFunctor(std::make_unique<BoxedWrapper>(entry)));
  note_interception(name);
}

double measured_call_cost() {
  const at::Tensor a = at::ones({4, 4});
  at::Tensor out = at::empty({4, 4});
  const auto nanoseconds = [&](bool counted) {
    const Trial trial(counted);
    constexpr int calls = 200;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) at::mm_out(out, a, a);
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin)
               .count() /
           calls;
  };
  std::vector<double> differences;
  for (int round = 0; round < 31; ++round)
    differences.push_back(nanoseconds(true) - nanoseconds(false));
  std::nth_element(differences.begin(), differences.begin() + 15, differences.end());
  return std::max(0.0, differences[15]);
}

void add_unsupported(const OpEntry& entry) noexcept {
  ThreadCounters& counters = thread_counters();
  counters.unsupported_op_calls.add(1);
  counters.unsupported_by_op[entry.index].add(1);
}

void add_beside(const OpEntry& entry, Dtype dtype, PassAttribution attribution, const Work& work) {
  thread_counters().add_beside(entry.index, dtype, attribution, work, module_now(attribution));
}

void add_call(const OpEntry& entry, c10::DeviceType device, const OpCall& call) noexcept try {
  const std::optional<OpCost> cost = flop_cost(entry, call);
  if (!cost) [[unlikely]]
    return add_unsupported(entry);
  Arg factor = call.arg(entry.rule != nullptr ? entry.rule->dtype_argument : 0);
  if (entry.rule != nullptr) factor.dtype = entry.rule->compute_dtype.value_or(factor.dtype);
  add_cost(entry, device, factor, *cost);
} catch (...) {
  add_unsupported(entry);  // a user's rule threw
}

}  // namespace torch_adapter

using namespace torch_adapter;  // NOLINT(google-build-using-namespace)

Result<void> install_op_counter() {
  static const Result<void> result = install();
  return result;
}

std::vector<std::string> intercepted_ops() {
  const std::lock_guard lock(registry().mutex);
  return {registry().intercepted.begin(), registry().intercepted.end()};
}

Result<void> register_op(const std::string& name, UserRule rule) {
  if (name.find("::") == std::string::npos) {
    return Error{ErrorCode::invalid_argument,
                 "register_op: '" + name +
                     "' is no operator name; write namespace and name, as in \"mylib::" + name +
                     "\""};
  }
  if (auto installed = install_op_counter(); !installed) return installed.error();
  const std::lock_guard lock(registry().mutex);
  OpEntry* entry = find_or_add_op(name);
  if (entry == nullptr)
    return Error{ErrorCode::unsupported, "register_op: no room for '" + name + "'"};
  bool found = false;
  for (const c10::OperatorName& each : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema(each);
    if (!op || (each.name != name && full_name(each) != name)) continue;
    found = true;
    if (is_intercepted(each)) continue;
    if (!can_intercept(*op)) {
      return Error{ErrorCode::unsupported,
                   "register_op: '" + full_name(each) +
                       "' is made of other operators, which are counted themselves"};
    }
    register_boxed(*op, *entry);
  }
  if (!found) {
    return Error{ErrorCode::not_found,
                 "register_op: torch has no operator '" + name +
                     "'; load the library that defines it first"};
  }
  // The old rule stays: a thread may be in it.
  entry->user.store(new UserRule(std::move(rule)), std::memory_order_release);
  return {};
}

}  // namespace flopmeter
