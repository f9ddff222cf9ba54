// SPDX-License-Identifier: Apache-2.0
#include "op_frame.h"

#include "arguments.h"
#include "context.h"
#include "interceptor.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <vector>

namespace flopmeter::torch_adapter {
namespace {

bool is_sparse(const c10::IValue& input) {
  constexpr std::array layouts = {
      c10::kSparse, c10::kSparseCsr, c10::kSparseCsc, c10::kSparseBsr, c10::kSparseBsc};
  return input.isTensor() && input.toTensor().defined() &&
         std::find(layouts.begin(), layouts.end(), input.toTensor().layout()) != layouts.end();
}

bool is_plain(const c10::IValue& input) {
  return input.isTensor() && input.toTensor().defined() && !input.toTensor().is_nested() &&
         !input.toTensor().unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

void append_shape(std::string& text, const std::int64_t* sizes, std::int64_t rank) {
  text += text.empty() ? "[" : " [";
  for (std::int64_t i = 0; i < rank; ++i) text += (i != 0 ? "," : "") + std::to_string(sizes[i]);
  text += "]";
}

std::uint8_t kind_of(const OpFrame& frame, bool tiny) {
  if (frame.unknown_work) return FLOPMETER_KIND_UNKNOWN;
  if (frame.kind == FLOPMETER_KIND_MEMORY && tiny) return FLOPMETER_KIND_TINY;
  return frame.kind;
}

}  // namespace

bool read_arguments(const at::RecordFunction& function, OpFrame& frame, bool with_shape) {
  std::int64_t largest = 0;
  c10::IntArrayRef sizes;
  bool on_host = false;
  bool on_device = false;
  for (const c10::IValue& input : function.inputs()) {
    if (!is_plain(input)) continue;
    const at::Tensor& tensor = input.toTensor();
    if (tensor.numel() > largest) {
      largest = tensor.numel();
      sizes = tensor.sizes();
    }
    (tensor.is_cpu() ? on_host : on_device) = true;
  }
  if (with_shape && largest > 0)
    append_shape(frame.shape, sizes.data(), static_cast<std::int64_t>(sizes.size()));
  frame.size =
      largest > 0 ? static_cast<int>(std::bit_width(static_cast<std::uint64_t>(largest))) : 0;
  frame.across_devices = on_host && on_device && std::string_view{function.name()} == "aten::copy_";
  return on_device;
}

void read_cost(const at::RecordFunction& function, const void* rule, OpFrame& frame) {
  const auto inputs = function.inputs();
  if (std::any_of(inputs.begin(), inputs.end(), is_sparse)) {
    frame.unknown_work = true;
    return;
  }
  BoxedScratch scratch;
  std::vector<FlopmeterArg> args;
  std::string shape;
  for (const c10::IValue& input : inputs) {
    if (input.isTensor() && input.toTensor().defined() && !is_plain(input)) return;
    args.push_back(boxed_arg(input, scratch));
    if (args.back().kind == FLOPMETER_TENSOR)
      append_shape(shape, args.back().values, args.back().rank);
  }
  if (const auto name = function.operator_name(); name && !name->name.starts_with("aten::")) {
    const auto handle = c10::Dispatcher::singleton().findSchema(*name);
    const FlopmeterOp* op = handle ? find_op(*handle) : nullptr;
    if (op != nullptr) args = arranged(places_of(*op, handle->schema()), args);
  }
  const int cost = host->profile_cost(rule, args.data(), args.size(), &frame.flops, &frame.bytes);
  frame.unknown_work = cost == FLOPMETER_COST_UNKNOWN;
  if (!frame.unknown_work) frame.shape = std::move(shape);
}

RowKey row_key(const at::RecordFunction& function, OpFrame& frame, bool tiny) {
  return {function.name(),
          kind_of(frame, tiny),
          std::move(frame.shape),
          frame.size,
          frame.in_backward,
          frame.recompute,
          frame.across_devices,
          frame.phase};
}

}  // namespace flopmeter::torch_adapter
