// SPDX-License-Identifier: Apache-2.0
#include "old_convolutions.h"

#include "op_call_args.h"

#include <flopmeter/catalog/operations.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace flopmeter {
namespace {

/// The convolution of (input, gradient of its result, weight).  A transposed convolution's weight
/// starts with the input's channels, any other's with the result's; the kernel is applied once per
/// position of the input, or once per position of the result.
std::optional<OpCost> one_gradient(const OpCall& call) {
  const Arg input = call.arg(0);
  const Arg gradient = call.arg(1);
  const Arg weight = call.arg(2);
  if (!input.is_tensor() || input.rank < 3 || !gradient.is_tensor(input.rank) ||
      !weight.is_tensor() || weight.rank < 3) {
    return std::nullopt;
  }
  const bool transposed = weight[0] != gradient[1] && weight[0] == input[1];
  const Arg& applied = transposed ? input : gradient;
  Convolution op{.batch = applied[0], .positions = 1, .weights = weight.elements()};
  for (int i = 2; i < applied.rank; ++i) op.positions *= applied[i];
  const Flops work = flops(op);
  const WideInt elements = input.elements() + gradient.elements() + weight.elements();
  return OpCost{.executed = work, .model = work, .bytes = {elements * input.bits() / 8}};
}

constexpr OpRule gradient_rule{.name = "gradient of a convolution", .flop_cost = one_gradient};

std::string key_of(const Arg& input, const Arg& weight) {
  std::string key;
  for (const Arg* arg : {&input, &weight}) {
    for (int i = 0; i < arg->rank; ++i) key.append(std::to_string((*arg)[i])).append(",");
    key += ';';
  }
  return key;
}

}  // namespace

bool is_old_convolution_backward(std::string_view name) {
  // All with arguments (input, gradient of the result, weight, …).
  static constexpr auto names =
      std::to_array<std::string_view>({"aten::cudnn_convolution_backward",
                                       "aten::cudnn_convolution_transpose_backward",
                                       "aten::miopen_convolution_backward",
                                       "aten::miopen_convolution_transpose_backward",
                                       "aten::miopen_depthwise_convolution_backward",
                                       "aten::mkldnn_convolution_backward"});
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_convolution(std::string_view name) {
  return name.find("conv") != std::string_view::npos;
}

OldConvolutions::OldConvolutions(const Trace& trace) {
  std::set<std::pair<TextId, TextId>> seen;  // repeated calls add no information
  for (const HostEvent& event : trace.host_events) {
    if (event.dims == no_text || event.concrete != no_text) continue;
    if (!seen.emplace(event.name, event.dims).second) continue;
    const std::string_view name = trace.text(event.name);
    const bool gradient_first = name == "aten::convolution_backward";
    if (!gradient_first && !is_old_convolution_backward(name)) continue;
    const OpCallArgs args{trace.text(event.dims), trace.text(event.types), {}};
    std::array<Arg, 3> ordered = {args.call().arg(0), args.call().arg(1), args.call().arg(2)};
    if (gradient_first) std::swap(ordered[0], ordered[1]);
    const auto cost = checked_flop_cost(gradient_rule, {.args = ordered, .output = {}});
    if (!cost) continue;
    const auto [known, added] = by_shapes_.try_emplace(key_of(ordered[0], ordered[2]), cost);
    if (!added && known->second && known->second->executed != cost->executed) known->second.reset();
  }
}

std::optional<OpCost> OldConvolutions::forward(const OpCall& call) const {
  const Arg input = call.arg(0);
  const Arg weight = call.arg(1);
  if (!input.is_tensor() || !weight.is_tensor()) return std::nullopt;
  const auto known = by_shapes_.find(key_of(input, weight));
  return known == by_shapes_.end() ? std::nullopt : known->second;
}

std::optional<OpCost> OldConvolutions::backward(const Trace& trace,
                                                std::uint32_t event,
                                                const OpCall& call) {
  auto cost = checked_flop_cost(gradient_rule, call);
  if (!cost) return std::nullopt;
  bool of_input = false;
  bool of_weight = false;
  const std::vector<HostEvent>& events = trace.host_events;
  for (std::uint32_t i = event + 1; i < events.size() && events[i].thread == events[event].thread &&
                                    events[i].start < events[event].end();
       ++i) {
    const std::string_view name = trace.text(events[i].name);
    of_input = of_input || name.ends_with("_backward_input");
    of_weight = of_weight || name.ends_with("_backward_weight");
  }
  const WideInt gradients = (of_input ? 1 : 0) + (of_weight ? 1 : 0);
  if (gradients == 0) return std::nullopt;
  return OpCost{.executed = gradients * cost->executed,
                .model = gradients * cost->model,
                .bytes = gradients * cost->bytes};
}

}  // namespace flopmeter
