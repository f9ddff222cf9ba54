// SPDX-License-Identifier: Apache-2.0
#include "op_flops.h"

#include "kernel_math.h"
#include "old_convolutions.h"
#include "op_call_args.h"
#include "texts.h"

#include <flopmeter/catalog/op_rule.h>

#include <map>
#include <optional>
#include <tuple>

namespace flopmeter {
namespace {

bool is_autograd_node(std::string_view name) {
  // torch before 1.10 has no event of the engine itself, only of its nodes.
  return name.starts_with("autograd::engine::evaluate_function") ||
         (!name.starts_with("aten::") && name.find("::") == std::string_view::npos &&
          (name.ends_with("Backward") || name.ends_with("Backward0")));
}

std::vector<OpContext> find_contexts(const Trace& trace, const Links& links) {
  const auto by_name = by_text(trace, [](std::string_view name) {
    return OpContext{.backward = is_autograd_node(name),
                     .optimizer = name.starts_with("Optimizer.step#")};
  });
  std::vector<OpContext> contexts(trace.host_events.size());
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    const std::uint32_t parent = links.parent[i];
    if (parent == no_event) continue;
    const OpContext outer = contexts[parent];
    const OpContext named = by_name[trace.host_events[parent].name];
    contexts[i] = {.backward = outer.backward || named.backward,
                   .optimizer = outer.optimizer || named.optimizer};
  }
  return contexts;
}

/// A rule and the costs of its calls; calls with equal arguments are computed once.
class Costs {
 public:
  explicit Costs(const Trace& trace)
      : trace_(trace), convolutions_(trace), rules_(trace.texts.size()) {}

  struct Call {
    OpCost cost;
    Dtype dtype = Dtype::other;
  };

  /// Null if the event has no rule.
  const OpRule* rule(const HostEvent& event) {
    if (event.dims == no_text) return nullptr;
    auto& known = rules_[event.name];
    if (!known) known = find_op_rule(trace_.text(event.name));
    return *known;
  }

  std::optional<Call> call(std::uint32_t index) {
    const HostEvent& event = trace_.host_events[index];
    if (event.dims == no_text) return std::nullopt;
    if (rule(event) == nullptr) return compute(index);
    const auto [known, added] =
        calls_.try_emplace({event.name, event.dims, event.types, event.concrete});
    if (added) known->second = compute(index);
    return known->second;
  }

 private:
  std::optional<Call> compute(std::uint32_t index) {
    const HostEvent& event = trace_.host_events[index];
    const OpRule* const known = rule(event);
    const OpCallArgs args{
        trace_.text(event.dims), trace_.text(event.types), trace_.text(event.concrete)};
    const OpCall call = args.call();
    const bool old = event.concrete == no_text && is_convolution(trace_.text(event.name));
    const bool backward = trace_.text(event.name).find("backward") != std::string_view::npos;
    std::optional<OpCost> cost;
    if (!old) {
      if (known != nullptr) cost = checked_flop_cost(*known, call);
    } else if (known == nullptr) {
      cost = OldConvolutions::backward(trace_, index, call);
    } else if (!backward) {
      cost = convolutions_.forward(call);
    }
    if (!cost) return std::nullopt;
    const Dtype stated = call.arg(known != nullptr ? known->dtype_argument : 0).dtype;
    return Call{.cost = *cost,
                .dtype = known != nullptr ? known->compute_dtype.value_or(stated) : stated};
  }

  const Trace& trace_;
  OldConvolutions convolutions_;
  std::vector<std::optional<const OpRule*>> rules_;
  std::map<std::tuple<TextId, TextId, TextId, TextId>, std::optional<Call>> calls_;
};

/// Single-precision inputs run as fp32 or tf32: only the kernel's name states which.  If the trace
/// states no types at all, the name is all there is.
void apply_kernel_math(const Trace& trace, const Links& links, OpFlops& flops) {
  std::vector<std::optional<Dtype>> math(trace.texts.size());
  std::vector<bool> asked(trace.texts.size(), false);
  for (std::size_t i = 0; i < trace.device_events.size(); ++i) {
    const DeviceEvent& event = trace.device_events[i];
    if (links.op[i] == no_event || event.kind != DeviceClass::compute) continue;
    const std::uint32_t counted = flops.counted_as[links.op[i]];
    if (counted == no_event) continue;
    CountedOp& op = flops.ops[counted];
    if (op.dtype != Dtype::fp32 && op.dtype != Dtype::other) continue;
    if (!asked[event.name]) math[event.name] = math_of_kernel(trace.text(event.name));
    asked[event.name] = true;
    const std::optional<Dtype> ran = math[event.name];
    if (!ran) continue;
    if (op.dtype == Dtype::other || ran == Dtype::tf32) op.dtype = *ran;
  }
}

std::vector<bool> find_supported(const Trace& trace, const Links& links, const OpFlops& flops) {
  std::vector<bool> by_name(trace.texts.size(), false);
  if (!trace.has_shapes) {
    for (TextId id = 0; id < trace.texts.size(); ++id) {
      const OpRule* const rule = find_op_rule(trace.text(id));
      by_name[id] = rule != nullptr && !rule->offline;
    }
  }
  std::vector<bool> supported(trace.host_events.size(), false);
  for (std::size_t i = 0; i < supported.size(); ++i) {
    const std::uint32_t parent = links.parent[i];
    supported[i] = flops.counted_as[i] != no_event || by_name[trace.host_events[i].name] ||
                   (parent != no_event && supported[parent]);
  }
  return supported;
}

}  // namespace

OpFlops count_flops(const Trace& trace, const Links& links) {
  OpFlops flops;
  flops.context = find_contexts(trace, links);
  flops.counted_as.assign(trace.host_events.size(), no_event);
  flops.unchecked = !trace.device_events.empty() && !links.any_launch;
  const bool check_launches = links.any_launch;
  Costs costs{trace};

  const auto count = [&](std::uint32_t i) {
    const HostEvent& event = trace.host_events[i];
    const std::optional<Costs::Call> call = costs.call(i);
    if (!call) {
      flops.failed.push_back(i);
      return false;
    }
    if (call->cost.executed.value == 0) return false;
    const OpContext context = flops.context[i];
    const bool recompute = context.backward && event.sequence != no_id;
    // As in the live counter: a closure that the optimizer calls has gradients.
    const bool optimizer = context.optimizer && !context.backward && event.sequence == no_id;
    flops.counted_as[i] = static_cast<std::uint32_t>(flops.ops.size());
    flops.ops.push_back({.event = i,
                         .executed = call->cost.executed,
                         .model = recompute ? Flops{} : call->cost.model,
                         .bytes = call->cost.bytes,
                         .dtype = call->dtype,
                         .pairs = call->cost.pairs,
                         .recompute = recompute,
                         .optimizer = optimizer});
    return true;
  };

  std::vector<std::uint32_t> composites;  // count only if nothing inside them does
  std::vector<bool> holds_counted(trace.host_events.size(), false);
  for (std::uint32_t i = 0; i < trace.host_events.size(); ++i) {
    const HostEvent& event = trace.host_events[i];
    const std::uint32_t parent = links.parent[i];
    if (parent != no_event) flops.counted_as[i] = flops.counted_as[parent];
    if (event.kind != HostKind::op || event.dims == no_text || flops.counted_as[i] != no_event)
      continue;
    if (check_launches && !links.launched[i]) continue;
    const OpRule* const rule = costs.rule(event);
    if (rule != nullptr && rule->offline) {
      composites.push_back(i);
    } else if (count(i)) {
      for (std::uint32_t p = parent; p != no_event && !holds_counted[p]; p = links.parent[p])
        holds_counted[p] = true;
    }
  }
  for (const std::uint32_t i : composites) {
    if (holds_counted[i] || flops.counted_as[i] != no_event) continue;
    const std::uint32_t before = static_cast<std::uint32_t>(flops.ops.size());
    if (!count(i)) continue;
    for (std::uint32_t inside = i + 1; inside < trace.host_events.size(); ++inside) {
      const std::uint32_t parent = links.parent[inside];
      if (parent == no_event || flops.counted_as[parent] != before) break;
      flops.counted_as[inside] = before;
    }
  }
  apply_kernel_math(trace, links, flops);
  flops.supported = find_supported(trace, links, flops);
  return flops;
}

}  // namespace flopmeter
