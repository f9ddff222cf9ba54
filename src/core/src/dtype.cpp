// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/dtype.h>

#include <array>
#include <string>

namespace flopmeter {
namespace {

struct Row {
  std::string_view name;
  std::array<std::string_view, 14> aliases;
};

// In the order of the enumeration.
constexpr std::array<Row, dtype_count> rows{{
    {"fp64", {"float64", "double", "fp64_tensor", "64_true"}},
    {"fp32", {"float32", "float", "single", "32_true"}},
    {"tf32", {"tensorfloat32"}},
    {"bf16", {"bfloat16", "bf16_mixed", "bf16_true"}},
    {"fp16", {"float16", "half", "fp16_mixed", "16_mixed", "16_true"}},
    // The recipes' names (current, delayed, sub-channel, microscaling) are Megatron's.
    {"fp8",
     {"float8",
      "float8_e4m3fn",
      "float8_e5m2",
      "float8_e4m3fnuz",
      "float8_e5m2fnuz",
      "fp8_e4m3",
      "fp8_e5m2",
      "fp8_hybrid",
      "mxfp8",
      "fp8_mx",
      "fp8_cs",
      "fp8_ds",
      "fp8_sc"}},
    {"fp4", {"float4", "float4_e2m1fn_x2", "mxfp4", "nvfp4"}},
    {"int8", {"qint8", "uint8"}},
    {"other", {}},
}};

}  // namespace

std::string_view to_string(Dtype dtype) {
  return rows[static_cast<std::size_t>(dtype)].name;
}

std::optional<Dtype> parse_dtype(std::string_view text) {
  std::string lower{text};
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  text = lower;
  if (text.starts_with("torch.")) text.remove_prefix(6);
  if (text.starts_with("amp_")) text.remove_prefix(4);
  for (std::size_t i = 0; i + 1 < dtype_count; ++i) {
    if (text == rows[i].name) return static_cast<Dtype>(i);
    for (const auto alias : rows[i].aliases) {
      if (!alias.empty() && text == alias) return static_cast<Dtype>(i);
    }
  }
  return std::nullopt;
}

}  // namespace flopmeter
