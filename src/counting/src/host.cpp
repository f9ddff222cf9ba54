// SPDX-License-Identifier: Apache-2.0
#include "host.h"

#include "count_call.h"
#include "op_table.h"
#include "thread_counters.h"

#include <flopmeter/core/communication.h>
#include <flopmeter/core/current_phase.h>
#include <flopmeter/core/op_profile.h>
#include <flopmeter/counting/device_clock.h>

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {
namespace {

constexpr bool same(auto ours, auto theirs) {
  return static_cast<int>(ours) == static_cast<int>(theirs);
}
static_assert(same(Dtype::fp64, FLOPMETER_FP64) && same(Dtype::fp32, FLOPMETER_FP32) &&
              same(Dtype::tf32, FLOPMETER_TF32) && same(Dtype::bf16, FLOPMETER_BF16) &&
              same(Dtype::fp16, FLOPMETER_FP16) && same(Dtype::fp8, FLOPMETER_FP8) &&
              same(Dtype::fp4, FLOPMETER_FP4) && same(Dtype::int8, FLOPMETER_INT8) &&
              same(Dtype::other, FLOPMETER_OTHER_DTYPE));
static_assert(same(PassAttribution::forward, FLOPMETER_FORWARD) &&
              same(PassAttribution::backward, FLOPMETER_BACKWARD) &&
              same(PassAttribution::recompute, FLOPMETER_RECOMPUTE) &&
              same(PassAttribution::pending_first, FLOPMETER_PENDING_FIRST) &&
              same(PassAttribution::pending, FLOPMETER_PENDING));
static_assert(same(Arg::Kind::none, FLOPMETER_NO_ARG) &&
              same(Arg::Kind::tensor, FLOPMETER_TENSOR) &&
              same(Arg::Kind::integer, FLOPMETER_INTEGER) &&
              same(Arg::Kind::list, FLOPMETER_LIST) && same(Arg::Kind::tensors, FLOPMETER_TENSORS));
static_assert(same(OpKind::compute, FLOPMETER_KIND_COMPUTE) &&
              same(OpKind::memory, FLOPMETER_KIND_MEMORY) &&
              same(OpKind::tiny, FLOPMETER_KIND_TINY) &&
              same(OpKind::unknown, FLOPMETER_KIND_UNKNOWN) &&
              same(OpKind::communication, FLOPMETER_KIND_COMMUNICATION));
static_assert(same(Phase::optimizer, FLOPMETER_PHASE_OPTIMIZER));
static_assert(sizeof(Arg) == sizeof(FlopmeterArg) && alignof(Arg) == alignof(FlopmeterArg) &&
              offsetof(Arg, kind) == offsetof(FlopmeterArg, kind) &&
              offsetof(Arg, dtype) == offsetof(FlopmeterArg, dtype) &&
              offsetof(Arg, complex) == offsetof(FlopmeterArg, is_complex) &&
              offsetof(Arg, rank) == offsetof(FlopmeterArg, rank) &&
              offsetof(Arg, values) == offsetof(FlopmeterArg, values));
static_assert(sizeof(std::atomic<Phase>) == 1 && sizeof(std::atomic<std::int32_t>) == 4);

std::atomic<const FlopmeterAdapter*> adapter{nullptr};
std::atomic<int> module_users{0};

std::vector<std::string_view> to_views(const char* const* names, std::size_t count) {
  return {names, names + count};
}

/// Whether torch itself defines an operator, so that without a rule it executes no FLOPs.
bool is_framework_op(std::string_view name) {
  constexpr auto known = std::to_array<std::string_view>({"aten",
                                                          "prim",
                                                          "prims",
                                                          "profiler",
                                                          "c10d",
                                                          "torch",
                                                          "autograd",
                                                          "static_runtime",
                                                          "higher_order",
                                                          "any"});
  const std::size_t colon = name.find("::");
  return colon == std::string_view::npos ||
         std::find(known.begin(), known.end(), name.substr(0, colon)) != known.end();
}

FlopmeterOp* find_op(const char* name, const char* const* parameters, std::size_t count) noexcept
    try {
  if (const OpRule* rule = find_op_rule(name))
    return rule->offline || rule->python ? nullptr : find_or_add_op(name);
  if (is_framework_op(name)) return nullptr;
  const OpRule* recognized = recognize_op(name, to_views(parameters, count));
  return recognized == nullptr ? nullptr : find_or_add_op(name, recognized);
} catch (...) {
  return nullptr;
}

void find_places(const FlopmeterOp* op,
                 const char* const* parameters,
                 std::size_t count,
                 std::int32_t* places) noexcept {
  const auto& entry = static_cast<const OpEntry&>(*op);
  // A user's rule gets the arguments in their order.
  const bool by_name = entry.rule != nullptr && entry.rule->place_of != nullptr &&
                       entry.user.load(std::memory_order_acquire) == nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    places[i] = by_name ? entry.rule->place_of(parameters[i]) : static_cast<std::int32_t>(i);
  }
}

void list_library_ops(void* context, void (*add)(void*, const char*)) noexcept try {
  for (const OpFamily* family : op_families()) {
    for (const OpRule& rule : family->rules) {
      if (!rule.offline && !rule.python && !is_framework_op(rule.name))
        add(context, std::string(rule.name).c_str());
    }
  }
} catch (...) {  // no memory: these operators are not counted
}

/// Whether a user registered a rule for an operator, or its parameters are familiar.
bool is_counted_by_library(std::string_view name) {
  for (std::size_t i = 0; const OpEntry* entry = op_entry(i); ++i) {
    if (has_rule(*entry) && entry->name == name) return true;
  }
  return false;
}

/// Operators of torch itself without a rule execute no FLOPs; those of other libraries may.
std::uint8_t profile_kind(const char* name, const void** rule) noexcept {
  const OpRule* found = find_op_rule(name);
  *rule = found != nullptr && !found->offline ? found : nullptr;
  if (found != nullptr) return FLOPMETER_KIND_COMPUTE;
  if (is_framework_op(name)) return FLOPMETER_KIND_MEMORY;
  return is_counted_by_library(name) ? FLOPMETER_KIND_COMPUTE : FLOPMETER_KIND_UNKNOWN;
}

int profile_cost(const void* rule,
                 const FlopmeterArg* args,
                 std::size_t count,
                 std::uint64_t* flops,
                 std::uint64_t* bytes) noexcept try {
  const auto& cost_of = static_cast<const OpRule*>(rule)->flop_cost;
  if (cost_of == unknown_cost) return FLOPMETER_COST_UNKNOWN;
  const auto cost = cost_of({.args = to_args(args, count), .output = {}});
  if (!cost) return FLOPMETER_COST_NO_MATCH;
  *flops = static_cast<std::uint64_t>(cost->executed.value);
  *bytes = static_cast<std::uint64_t>(cost->bytes.value);
  return FLOPMETER_COST_KNOWN;
} catch (...) {
  return FLOPMETER_COST_NO_MATCH;
}

const FlopmeterHost& host() {
  static const FlopmeterHost table{
      .abi_version = FLOPMETER_ADAPTER_ABI_VERSION,
      .phase = reinterpret_cast<const std::uint8_t*>(&current_phase()),
      .collectives_under_way = reinterpret_cast<const std::int32_t*>(&collectives_under_way),
      .find_op = find_op,
      .find_places = find_places,
      .list_library_ops = list_library_ops,
      .add_unsupported = add_unsupported,
      .thread_counters = []() noexcept -> void* { return &thread_counters(); },
      .settle =
          [](void* counters, std::uint8_t first, std::uint8_t rest) noexcept {
            static_cast<ThreadCounters*>(counters)->settle(static_cast<PassAttribution>(first),
                                                           static_cast<PassAttribution>(rest));
          },
      .collective_began = collective_began,
      .collective_ended = collective_ended,
      .operation_began = operation_began,
      .operation_ended = operation_ended,
      .profile_kind = profile_kind,
      .profile_cost = profile_cost,
      .device_event =
          [](int event, std::int64_t bytes) noexcept {
            report_device_event(static_cast<DeviceEvent>(event), bytes);
          },
  };
  return table;
}

}  // namespace

Result<void> attach_adapter(const FlopmeterAdapter* (*entry)(const FlopmeterHost*)) {
  const FlopmeterAdapter* found = entry(&host());
  if (found == nullptr || found->abi_version != FLOPMETER_ADAPTER_ABI_VERSION) {
    return Error{ErrorCode::unsupported,
                 "the torch adapter was built for another version of flopmeter; build it again"};
  }
  const FlopmeterAdapter* none = nullptr;
  if (!adapter.compare_exchange_strong(none, found) && none != found)
    return Error{ErrorCode::unsupported, "another torch adapter is in use in this process"};
  return {};
}

Result<void> load_adapter(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Error{ErrorCode::unsupported, dlerror()};
  void* entry = dlsym(library, "flopmeter_torch_adapter");
  if (entry == nullptr) return Error{ErrorCode::unsupported, path + " is not a torch adapter"};
  return attach_adapter(reinterpret_cast<const FlopmeterAdapter* (*)(const FlopmeterHost*)>(entry));
}

const FlopmeterAdapter* attached_adapter() {
  return adapter.load(std::memory_order_acquire);
}

const FlopmeterAdapter& require_adapter() {
  if (const FlopmeterAdapter* found = attached_adapter()) return *found;
  throw std::runtime_error(
      "counting needs the torch adapter: include <flopmeter/torch/op_counter.h> and link "
      "flopmeter::torch");
}

void add_users(int counting, int modules) {
  module_users.fetch_add(modules);
  require_adapter().add_users(counting, modules);
}

bool counts_modules() {
  return module_users.load() != 0;
}

}  // namespace flopmeter
