// SPDX-License-Identifier: Apache-2.0
#include "op_call_args.h"

#include "json_cursor.h"
#include "numbers.h"

#include <algorithm>
#include <array>
#include <optional>

namespace flopmeter {
namespace {

constexpr std::size_t most_arguments = 256;

/// The entries of a JSON list, or of a flat tuple as Python prints it.
std::vector<std::string_view> entries(std::string_view list) {
  std::vector<std::string_view> all;
  if (list.starts_with('(') && list.ends_with(')')) {
    for (std::size_t at = 1; at + 1 < list.size();) {
      const std::size_t end = std::min(list.find(',', at), list.size() - 1);
      const std::size_t first = std::min(list.find_first_not_of(' ', at), end);
      if (first < end) all.push_back(list.substr(first, end - first));
      at = end + 1;
    }
    return all;
  }
  JsonCursor cursor{list};
  if (!cursor.take('[')) return all;
  std::string_view entry;
  while (all.size() < most_arguments && cursor.peek() != ']' && cursor.value(entry)) {
    all.push_back(entry);
    if (!cursor.take(',')) break;
  }
  return all;
}

/// The integers of "[2, 3]"; empty if an entry is something else.
std::optional<std::vector<std::int64_t>> integers(std::string_view list) {
  std::vector<std::int64_t> all;
  for (const std::string_view entry : entries(list)) {
    if (entry == "True" || entry == "False") {
      all.push_back(entry == "True" ? 1 : 0);
      continue;
    }
    const std::int64_t value = parse_id(entry);
    if (value == no_id && entry != "-1") return std::nullopt;
    all.push_back(value);
  }
  return all;
}

struct TensorType {
  std::string_view name;
  Dtype dtype;
  bool complex = false;
};

// C++ names of the element types, as torch writes them.
constexpr auto tensor_types = std::to_array<TensorType>({
    {"float", Dtype::fp32},
    {"double", Dtype::fp64},
    {"c10::BFloat16", Dtype::bf16},
    {"c10::Half", Dtype::fp16},
    {"c10::Float8_e4m3fn", Dtype::fp8},
    {"c10::Float8_e5m2", Dtype::fp8},
    {"c10::Float8_e4m3fnuz", Dtype::fp8},
    {"c10::Float8_e5m2fnuz", Dtype::fp8},
    {"c10::Float4_e2m1fn_x2", Dtype::fp4},
    {"signed char", Dtype::int8},
    {"unsigned char", Dtype::int8},
    {"c10::qint8", Dtype::int8},
    {"c10::quint8", Dtype::int8},
    {"c10::complex<float>", Dtype::fp32, true},
    {"c10::complex<double>", Dtype::fp64, true},
    {"c10::complex<c10::Half>", Dtype::fp16, true},
});

bool is_no_tensor(std::string_view type) {
  static constexpr auto names = std::to_array<std::string_view>(
      {"Scalar", "ScalarList", "GenericList", "Int", "Bool", "Double", "Device", "None", "String"});
  return std::find(names.begin(), names.end(), type) != names.end();
}

}  // namespace

Arg OpCallArgs::tensor(std::string_view dims, std::string_view type) {
  auto extents = integers(dims);
  if (!extents) return {};
  const auto known = std::find_if(
      tensor_types.begin(), tensor_types.end(), [&](const auto& row) { return row.name == type; });
  values_.push_back(std::move(*extents));
  Arg arg = Arg::tensor(values_.back(), known != tensor_types.end() ? known->dtype : Dtype::other);
  arg.complex = known != tensor_types.end() && known->complex;
  return arg;
}

Arg OpCallArgs::scalar(std::string_view text) {
  if (text == "True" || text == "False") return Arg::number(text == "True" ? 1 : 0);
  if (text.starts_with('[') || text.starts_with('(')) {
    auto items = integers(text);
    if (!items) return {};
    values_.push_back(std::move(*items));
    return Arg::list(values_.back());
  }
  const std::int64_t value = parse_id(text);
  return value != no_id || text == "-1" ? Arg::number(value) : Arg{};
}

OpCallArgs::OpCallArgs(std::string_view dims, std::string_view types, std::string_view concrete) {
  const auto all_dims = entries(dims);
  const auto all_types = entries(types);
  const auto all_concrete = entries(concrete);
  const auto at = [](const std::vector<std::string_view>& list, std::size_t i) {
    return i < list.size() ? list[i] : std::string_view{};
  };
  for (std::size_t i = 0; i < std::max(all_dims.size(), all_concrete.size()); ++i) {
    const std::string_view shape = at(all_dims, i);
    const std::string_view type = at(all_types, i);
    const std::string_view value = at(all_concrete, i);
    const bool list_of_lists = !entries(shape).empty() && entries(shape).front().starts_with('[');
    if (!value.empty()) {
      args_.push_back(scalar(value));
    } else if (list_of_lists) {
      std::vector<Arg> items;
      for (const std::string_view item : entries(shape)) items.push_back(tensor(item, type));
      items_.push_back(std::move(items));
      args_.push_back(Arg::tensors(items_.back()));
    } else if (is_no_tensor(type) || (entries(shape).empty() && type.empty())) {
      args_.emplace_back();  // a value that is not stated, or a missing argument
    } else {
      args_.push_back(tensor(shape, type));
    }
  }
}

std::string OpCallArgs::shapes() const {
  std::string text;
  for (const Arg& arg : args_) {
    if (!arg.is_tensor()) continue;
    if (!text.empty()) text += ' ';
    text += '[';
    for (int i = 0; i < arg.rank; ++i) {
      if (i > 0) text += ',';
      text += std::to_string(arg[i]);
    }
    text += ']';
  }
  return text;
}

}  // namespace flopmeter
