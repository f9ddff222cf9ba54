// SPDX-License-Identifier: Apache-2.0
//
// The arguments of a call as rules read them.  Extents are not copied: an argument points into the
// tensor.
#pragma once

#include "torch_version.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <array>
#include <cstdint>
#include <deque>
#include <tuple>
#include <vector>

namespace flopmeter::torch_adapter {

/// Room for lists that torch does not keep as int64 (masks, symbolic sizes).
// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): zeroing costs as much as counting.
struct Scratch {
  std::array<std::int64_t, 32> values;
  std::size_t used = 0;
};

/// The elements of a tensor.
struct Element {
  std::uint8_t dtype = FLOPMETER_OTHER_DTYPE;
  std::uint8_t is_complex = 0;
};

constexpr auto make_elements() {
  std::array<Element, static_cast<std::size_t>(c10::ScalarType::NumOptions) + 1> table{};
  const auto set = [&](c10::ScalarType type, FlopmeterDtype dtype, bool is_complex = false) {
    table[static_cast<std::size_t>(type)] = {static_cast<std::uint8_t>(dtype),
                                             static_cast<std::uint8_t>(is_complex)};
  };
  set(c10::ScalarType::Double, FLOPMETER_FP64);
  set(c10::ScalarType::Float, FLOPMETER_FP32);
  set(c10::ScalarType::Half, FLOPMETER_FP16);
  set(c10::ScalarType::BFloat16, FLOPMETER_BF16);
  set(c10::ScalarType::Char, FLOPMETER_INT8);
  set(c10::ScalarType::Byte, FLOPMETER_INT8);
  set(c10::ScalarType::QInt8, FLOPMETER_INT8);
  set(c10::ScalarType::QUInt8, FLOPMETER_INT8);
  set(c10::ScalarType::ComplexHalf, FLOPMETER_FP16, true);
  set(c10::ScalarType::ComplexFloat, FLOPMETER_FP32, true);
  set(c10::ScalarType::ComplexDouble, FLOPMETER_FP64, true);
  for_each_new_scalar_type(set);
  return table;
}
inline constexpr auto elements = make_elements();

inline FlopmeterArg no_arg() {
  return {};
}
inline FlopmeterArg integer_arg(std::int64_t value) {
  FlopmeterArg arg{};
  arg.kind = FLOPMETER_INTEGER;
  arg.integer = value;
  return arg;
}
inline FlopmeterArg list_arg(const std::int64_t* items, std::size_t count) {
  FlopmeterArg arg{};
  arg.kind = FLOPMETER_LIST;
  arg.rank = static_cast<std::int32_t>(count);
  arg.values = items;
  return arg;
}

[[gnu::always_inline]] inline FlopmeterArg to_arg(const at::Tensor& tensor, Scratch& /*scratch*/) {
  if (!tensor.defined()) return no_arg();
  const auto sizes = tensor.sizes();
  const Element element = elements[static_cast<std::size_t>(tensor.scalar_type())];
  FlopmeterArg arg{};
  arg.kind = FLOPMETER_TENSOR;
  arg.dtype = element.dtype;
  arg.is_complex = element.is_complex;
  arg.rank = static_cast<std::int32_t>(sizes.size());
  arg.values = sizes.data();
  return arg;
}
inline FlopmeterArg to_arg(bool flag, Scratch& /*scratch*/) {
  return integer_arg(flag ? 1 : 0);
}
inline FlopmeterArg to_arg(std::int64_t value, Scratch& /*scratch*/) {
  return integer_arg(value);
}
inline FlopmeterArg to_arg(at::IntArrayRef items, Scratch& /*scratch*/) {
  return list_arg(items.data(), items.size());
}

/// A list of another form, copied as integers if there is room.
template <class List, class Read>
FlopmeterArg copied_list(const List& items, Scratch& scratch, Read read) {
  if (scratch.used + items.size() > scratch.values.size()) return no_arg();
  const std::int64_t* begin = scratch.values.data() + scratch.used;
  for (const auto& item : items) scratch.values[scratch.used++] = read(item);
  return list_arg(begin, items.size());
}
template <std::size_t n>
FlopmeterArg to_arg(const std::array<bool, n>& flags, Scratch& scratch) {
  return copied_list(flags, scratch, [](bool flag) { return flag ? 1 : 0; });
}
inline FlopmeterArg to_arg(const c10::SymInt& value, Scratch& /*scratch*/) {
  return value.is_symbolic() ? no_arg() : integer_arg(value.as_int_unchecked());
}
inline FlopmeterArg to_arg(c10::SymIntArrayRef items, Scratch& scratch) {
  for (const auto& item : items) {
    if (item.is_symbolic()) return no_arg();
  }
  return copied_list(
      items, scratch, [](const c10::SymInt& item) { return item.as_int_unchecked(); });
}
template <class T>
FlopmeterArg to_arg(const Optional<T>& value, Scratch& scratch) {
  return value.has_value() ? to_arg(*value, scratch) : no_arg();
}
template <class Other>
FlopmeterArg to_arg(const Other& /*value*/, Scratch& /*scratch*/) {
  return no_arg();
}

/// The boxed forms of the same, and lists of tensors.
struct BoxedScratch : Scratch {
  std::deque<std::vector<FlopmeterArg>> tensors;
};

inline FlopmeterArg boxed_arg(const c10::IValue& value, BoxedScratch& boxed) {
  Scratch& scratch = boxed;
  if (value.isTensor()) return to_arg(value.toTensor(), scratch);
  if (value.isInt()) return integer_arg(value.toInt());
  if (value.isBool()) return integer_arg(value.toBool() ? 1 : 0);
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
    FlopmeterArg arg{};
    arg.kind = FLOPMETER_TENSORS;
    arg.rank = static_cast<std::int32_t>(items.size());
    arg.items = items.data();
    return arg;
  }
  return no_arg();
}

/// The first tensor of a result.
template <class T>
[[gnu::always_inline]] inline FlopmeterArg output_arg(const T& value, Scratch& scratch) {
  return to_arg(value, scratch);
}
template <class First, class... Rest>
FlopmeterArg output_arg(const std::tuple<First, Rest...>& values, Scratch& scratch) {
  return to_arg(std::get<0>(values), scratch);
}

}  // namespace flopmeter::torch_adapter
