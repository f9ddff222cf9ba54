// SPDX-License-Identifier: Apache-2.0
//
// A call's arguments as the rulebook reads them.  Extents are not copied: an Arg points into the
// tensor.
#pragma once

#include <flopmeter/catalog/op_rule.h>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/version.h>

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <tuple>
#include <vector>

#define FLOPMETER_TORCH_VERSION (TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR)

namespace flopmeter::torch_adapter {

/// Room for lists that torch keeps in another form than int64 (masks, symbolic sizes).
// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): zeroing costs as much as cost_model a call.
struct Scratch {
  std::array<std::int64_t, 32> values;
  std::size_t used = 0;
};

/// What a tensor of a torch type holds.
struct Element {
  Dtype dtype = Dtype::other;
  bool complex = false;
};

constexpr auto make_elements() {
  std::array<Element, static_cast<std::size_t>(c10::ScalarType::NumOptions) + 1> table{};
  const auto set = [&](c10::ScalarType type, Dtype dtype, bool complex = false) {
    table[static_cast<std::size_t>(type)] = {.dtype = dtype, .complex = complex};
  };
  set(c10::ScalarType::Double, Dtype::fp64);
  set(c10::ScalarType::Float, Dtype::fp32);
  set(c10::ScalarType::Half, Dtype::fp16);
  set(c10::ScalarType::BFloat16, Dtype::bf16);
  set(c10::ScalarType::Char, Dtype::int8);
  set(c10::ScalarType::Byte, Dtype::int8);
  set(c10::ScalarType::QInt8, Dtype::int8);
  set(c10::ScalarType::QUInt8, Dtype::int8);
  set(c10::ScalarType::ComplexHalf, Dtype::fp16, true);
  set(c10::ScalarType::ComplexFloat, Dtype::fp32, true);
  set(c10::ScalarType::ComplexDouble, Dtype::fp64, true);
#if __has_include(<c10/util/Float8_e4m3fn.h>) || __has_include(<torch/headeronly/util/Float8_e4m3fn.h>)
  set(c10::ScalarType::Float8_e4m3fn, Dtype::fp8);
  set(c10::ScalarType::Float8_e5m2, Dtype::fp8);
  set(c10::ScalarType::Float8_e4m3fnuz, Dtype::fp8);
  set(c10::ScalarType::Float8_e5m2fnuz, Dtype::fp8);
#endif
#if __has_include( \
    <c10/util/Float4_e2m1fn_x2.h>) || __has_include(<torch/headeronly/util/Float4_e2m1fn_x2.h>)
  set(c10::ScalarType::Float4_e2m1fn_x2, Dtype::fp4);
#endif
  return table;
}
inline constexpr auto elements = make_elements();

[[gnu::always_inline]] inline Arg to_arg(const at::Tensor& tensor, Scratch& /*scratch*/) {
  if (!tensor.defined()) return {};
  const auto sizes = tensor.sizes();
  const Element element = elements[static_cast<std::size_t>(tensor.scalar_type())];
  Arg arg = Arg::tensor({sizes.data(), sizes.size()}, element.dtype);
  arg.complex = element.complex;
  return arg;
}
inline Arg to_arg(bool flag, Scratch& /*scratch*/) {
  return Arg::number(flag ? 1 : 0);
}
inline Arg to_arg(std::int64_t value, Scratch& /*scratch*/) {
  return Arg::number(value);
}
inline Arg to_arg(at::IntArrayRef items, Scratch& /*scratch*/) {
  return Arg::list({items.data(), items.size()});
}

/// A list in another form, written out as integers where there is room.
template <class List, class Read>
Arg copied_list(const List& items, Scratch& scratch, Read read) {
  if (scratch.used + items.size() > scratch.values.size()) return {};
  std::int64_t* begin = scratch.values.data() + scratch.used;
  for (const auto& item : items) scratch.values[scratch.used++] = read(item);
  return Arg::list({begin, items.size()});
}
template <std::size_t n>
Arg to_arg(const std::array<bool, n>& flags, Scratch& scratch) {
  return copied_list(flags, scratch, [](bool flag) { return flag ? 1 : 0; });
}
#if __has_include(<c10/core/SymInt.h>)
inline Arg to_arg(const c10::SymInt& value, Scratch& /*scratch*/) {
  return value.is_symbolic() ? Arg{} : Arg::number(value.as_int_unchecked());
}
inline Arg to_arg(c10::SymIntArrayRef items, Scratch& scratch) {
  for (const auto& item : items) {
    if (item.is_symbolic()) return {};
  }
  return copied_list(
      items, scratch, [](const c10::SymInt& item) { return item.as_int_unchecked(); });
}
#endif
#if FLOPMETER_TORCH_VERSION >= 205
template <class T>
using Optional = std::optional<T>;
#else
template <class T>
using Optional = c10::optional<T>;
#endif
template <class T>
Arg to_arg(const Optional<T>& value, Scratch& scratch) {
  return value.has_value() ? to_arg(*value, scratch) : Arg{};
}
template <class Other>
Arg to_arg(const Other& /*value*/, Scratch& /*scratch*/) {
  return {};
}

/// The boxed forms of the same, and lists of tensors.
struct BoxedScratch : Scratch {
  std::deque<std::vector<Arg>> tensors;
};

inline Arg boxed_arg(const c10::IValue& value, BoxedScratch& boxed) {
  Scratch& scratch = boxed;
  if (value.isTensor()) return to_arg(value.toTensor(), scratch);
  if (value.isInt()) return Arg::number(value.toInt());
  if (value.isBool()) return Arg::number(value.toBool() ? 1 : 0);
  if (value.isIntList()) {
    return copied_list(value.toIntList(), scratch, [](std::int64_t item) { return item; });
  }
  if (value.isBoolList()) {
    return copied_list(value.toBoolList(), scratch, [](bool item) { return item ? 1 : 0; });
  }
  if (value.isTensorList()) {
    auto& items = boxed.tensors.emplace_back();
    for (const at::Tensor& tensor : value.toTensorVector())
      items.push_back(to_arg(tensor, scratch));
    return Arg::tensors(items);
  }
  return {};
}

/// The first tensor of what came back.
template <class T>
[[gnu::always_inline]] inline Arg output_arg(const T& value, Scratch& scratch) {
  return to_arg(value, scratch);
}
template <class First, class... Rest>
Arg output_arg(const std::tuple<First, Rest...>& values, Scratch& scratch) {
  return to_arg(std::get<0>(values), scratch);
}

}  // namespace flopmeter::torch_adapter
