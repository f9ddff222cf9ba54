// SPDX-License-Identifier: Apache-2.0
// Every operator that has a CPU kernel is one kernel of the simulated device.
//
// A boxed function serves them all: result shapes come from the operator's meta kernel (remembered
// per signature), the cost from costs.h. With values on, the CPU kernel then computes into the same
// memory.
#include "costs.h"
#include "values.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <torch/library.h>

#include <set>
#include <unordered_map>

namespace simgpu {
namespace {

constexpr auto on_device = c10::DeviceType::PrivateUse1;
using torch::jit::Stack;

struct Shape {
  std::vector<int64_t> sizes, strides;
  at::ScalarType dtype = at::kFloat;
  bool defined = true;
};
Shape shape_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {.defined = false};
  return {tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()};
}
at::Tensor allocate(const Shape& shape) {
  if (!shape.defined) return {};
  return at::empty_strided(
      shape.sizes, shape.strides, at::device(at::Device(on_device, 0)).dtype(shape.dtype));
}

/// Results of a call with one signature.
struct Plan {
  struct Result {
    int64_t argument = -1;  // the result is this argument
    bool is_list = false;
    std::vector<Shape> shapes;
  };
  std::vector<Result> results;
  std::vector<std::pair<size_t, Shape>> resized;  // out arguments
};

/// Copies an IValue with each tensor and device replaced.
template <class Convert>
c10::IValue converted(const c10::IValue& value, c10::Device device, Convert convert) {
  if (value.isTensor())
    return value.toTensor().defined() ? c10::IValue(convert(value.toTensor())) : value;
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorList()) list.push_back(convert(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList()) {
      list.push_back(tensor && tensor->defined() ? std::optional(convert(*tensor)) : std::nullopt);
    }
    return list;
  }
  if (value.isDevice()) return device;
  if (value.isGenerator()) return {};  // random numbers come from the CPU's default generator
  return value;
}

/// A wrapped number (the 2 of `x * 2`) takes part in type promotion as such, on any backend.
void keep_wrapped_number(const at::Tensor& from, const at::Tensor& to) {
  if (from.unsafeGetTensorImpl()->is_wrapped_number())
    to.unsafeGetTensorImpl()->set_wrapped_number(true);
}

at::Tensor as_meta(const at::Tensor& tensor) {
  if (tensor.is_cpu() && tensor.dim() == 0) return tensor;  // a number, and mixes with any device
  at::Tensor meta =
      at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
  keep_wrapped_number(tensor, meta);
  return meta;
}

template <class T>
void append_raw(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}
/// Adds what results depend on; false: this kind of argument is not understood.
bool append_signature(std::string& key, const c10::IValue& value, bool is_range) {
  key += '|';
  if (value.isTensor() || value.isTensorList() || value.isOptionalTensorList()) {
    std::vector<at::Tensor> tensors;
    append_tensors(value, tensors);
    for (const at::Tensor& tensor : tensors) {
      append_raw(key, tensor.scalar_type());
      append_raw(key, tensor.unsafeGetTensorImpl()->is_wrapped_number());
      for (int64_t d = 0; d < tensor.dim(); ++d) {
        append_raw(key, tensor.size(d));
        append_raw(key, tensor.stride(d));
      }
      key += ';';
    }
  } else if (value.isInt()) {
    append_raw(key, value.toInt());
  } else if (value.isDouble()) {
    // Its value matters to ranges only, and changes every step in optimizers.
    if (is_range) append_raw(key, value.toDouble());
  } else if (value.isBool()) {
    append_raw(key, value.toBool());
  } else if (value.isIntList()) {
    for (const int64_t item : value.toIntList()) append_raw(key, item);
  } else if (value.isDoubleList()) {
    append_raw(key, value.toDoubleList().size());
  } else if (value.isBoolList()) {
    for (const bool item : value.toBoolList()) append_raw(key, item);
  } else if (value.isString()) {
    key += value.toStringRef();
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) {
      if (!append_signature(key, item, is_range)) return false;
    }
  } else {
    return value.isNone() || value.isDevice() || value.isGenerator();
  }
  return true;
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

Plan make_plan(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  const auto& schema = op.schema();
  Stack stack;
  for (const c10::IValue& argument : arguments)
    stack.push_back(converted(argument, at::kMeta, as_meta));
  const Stack metas = stack;
  {
    const StraightTo meta(c10::DispatchKey::Meta);
    op.callBoxed(&stack);
  }
  Plan plan;
  for (size_t i = 0; i < metas.size(); ++i) {
    if (!is_written(schema.arguments()[i]) || !metas[i].isTensor() ||
        !metas[i].toTensor().defined())
      continue;
    if (metas[i].toTensor().sizes() != arguments[i].toTensor().sizes()) {
      plan.resized.emplace_back(i, shape_of(metas[i].toTensor()));
    }
  }
  for (size_t r = 0; r < stack.size(); ++r) {
    const auto* alias = schema.returns()[r].alias_info();
    Plan::Result result;
    for (size_t i = 0; alias != nullptr && i < arguments.size(); ++i) {
      const auto* other = schema.arguments()[i].alias_info();
      if (other != nullptr && other->beforeSets() == alias->beforeSets())
        result.argument = static_cast<int64_t>(i);
    }
    if (result.argument < 0) {
      TORCH_CHECK_NOT_IMPLEMENTED(stack[r].isTensor() || stack[r].isTensorList(),
                                  "simgpu: no tensor is returned");
      result.is_list = stack[r].isTensorList();
      if (result.is_list) {
        for (const at::Tensor& tensor : stack[r].toTensorList())
          result.shapes.push_back(shape_of(tensor));
      } else {
        result.shapes.push_back(shape_of(stack[r].toTensor()));
      }
    }
    plan.results.push_back(std::move(result));
  }
  return plan;
}

/// The plan of this call; null: the result depends on the data, or the operator has no meta kernel.
std::shared_ptr<const Plan> find_plan(const c10::OperatorHandle& op,
                                      c10::ArrayRef<c10::IValue> arguments) {
  static std::mutex mutex;
  static std::unordered_map<std::string, std::shared_ptr<const Plan>> plans;
  std::string key = toString(op.operator_name());
  const bool is_range =
      key.find("range") != std::string::npos || key.find("space") != std::string::npos;
  bool known_signature = true;
  for (const c10::IValue& argument : arguments) {
    known_signature = append_signature(key, argument, is_range) && known_signature;
  }
  if (known_signature) {
    const std::lock_guard lock(mutex);
    if (const auto found = plans.find(key); found != plans.end()) return found->second;
  }
  std::shared_ptr<const Plan> plan;
  try {
    plan = std::make_shared<const Plan>(make_plan(op, arguments));
  } catch (const std::exception&) {
    // The CPU kernel supports it, or raises the right error.
  }
  const std::lock_guard lock(mutex);
  if (known_signature && plan) plans.emplace(key, plan);
  return plan;
}

/// Computes on the CPU what the device's kernel would, in the memory of `arguments` and `results`.
std::function<void()> value_task(const c10::OperatorHandle& op,
                                 c10::ArrayRef<c10::IValue> arguments,
                                 c10::ArrayRef<at::Tensor> results) {
  Stack inputs;
  for (const c10::IValue& argument : arguments)
    inputs.push_back(converted(argument, at::kCPU, cpu_alias));
  std::vector<at::Tensor> outputs;
  for (const at::Tensor& result : results) outputs.push_back(cpu_alias(result));
  const size_t aliases = op.schema().returns().size();
  return [op, inputs, outputs, aliases] {
    const StraightTo cpu(c10::DispatchKey::CPU);
    Stack stack = inputs;
    op.callBoxed(&stack);
    std::vector<at::Tensor> computed;
    for (size_t r = 0; r < aliases; ++r) {
      if (op.schema().returns()[r].alias_info() == nullptr) append_tensors(stack[r], computed);
    }
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i].copy_(computed[i]);
  };
}

void run_operator(const c10::OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const auto arguments = Stack(stack->end() - static_cast<int64_t>(count), stack->end());
  const auto plan = find_plan(op, arguments);
  if (!plan) {
    device().synchronize_stream(current_stream(), "cpu_fallback");
    at::native::cpu_fallback(op, stack);
    return;
  }
  torch::jit::drop(*stack, count);
  for (const auto& [i, shape] : plan->resized) arguments[i].toTensor().resize_(shape.sizes);
  std::vector<at::Tensor> made;  // results other than arguments
  for (const Plan::Result& result : plan->results) {
    if (result.argument >= 0) {
      stack->push_back(arguments[static_cast<size_t>(result.argument)]);
      continue;
    }
    c10::List<at::Tensor> list;
    for (const Shape& shape : result.shapes) {
      list.push_back(allocate(shape));
      if (shape.defined) made.push_back(list.get(list.size() - 1));
    }
    if (result.is_list) {
      stack->push_back(list);
    } else {
      stack->push_back(list.get(0));
    }
  }
  std::vector<at::Tensor> written = made;
  for (size_t i = 0; i < count; ++i) {
    if (is_written(op.schema().arguments()[i])) append_tensors(arguments[i], written);
  }
  const std::string_view name = op.operator_name().name;
  device().launch(current_stream(),
                  kernel_of(name.substr(name.find("::") + 2), arguments, written),
                  values_are_on() ? value_task(op, arguments, made) : std::function<void()>());
}

/// Operators with a CPU kernel that views.cpp, copies.cpp, and attention.cpp implement instead.
bool is_written_by_hand(const std::string& name) {
  static const std::set<std::string> names{
      "aten::empty.memory_format",
      "aten::empty_strided",
      "aten::as_strided",
      "aten::view",
      "aten::_reshape_alias",
      "aten::unfold",
      "aten::resize_",
      "aten::set_",
      "aten::set_.source_Storage",
      "aten::set_.source_Tensor",
      "aten::set_.source_Storage_storage_offset",
      "aten::_local_scalar_dense",
      "aten::_copy_from",
      "aten::_copy_from_and_resize",
      "aten::_fused_sdp_choice",
      "aten::record_stream",
      "aten::is_pinned",
      "aten::_scaled_dot_product_flash_attention_for_cpu",
      "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
      "aten::_scaled_dot_product_fused_attention_overrideable",
      "aten::copy_",
      "aten::_scaled_dot_product_fused_attention_overrideable_backward",
      "aten::_pin_memory",
      "aten::view_as_real",
      "aten::view_as_complex",
      "aten::is_set_to",
      "aten::_to_copy"};
  return names.count(name) != 0;
}

// By name, not only as a fallback: composite kernels of such operators would win over a fallback,
// and call another operator where a GPU has one kernel.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0 || is_written_by_hand(toString(name))) continue;
    const auto op = dispatcher.findOp(name);
    const bool fused =
        name.name.rfind("aten::_foreach_", 0) == 0;  // on the CPU a loop, on a GPU one kernel
    if (!op || !(fused || op->hasKernelForDispatchKey(c10::DispatchKey::CPU))) continue;
    library.impl(toString(name).c_str(),
                 torch::CppFunction::makeFromBoxedFunction<&run_operator>());
  }
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_operator>());
}

}  // namespace

at::Tensor cpu_alias(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  const StraightTo cpu(c10::DispatchKey::CPU);
  at::Tensor alias = at::from_blob(
      tensor.data_ptr(),
      tensor.sizes(),
      tensor.strides(),
      [storage = tensor.storage()](void*) {},
      tensor.options().device(at::kCPU));
  keep_wrapped_number(tensor, alias);
  return alias;
}

bool values_are_on() {
  return settings().values != 0;
}

}  // namespace simgpu
