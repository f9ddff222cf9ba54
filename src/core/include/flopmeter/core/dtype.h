// SPDX-License-Identifier: Apache-2.0
//
// Compute dtypes. TF32 is one of them: an fp32 matmul that runs on TF32 units counts as tf32 and is
// compared with the tf32 peak.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace flopmeter {

enum class Dtype : std::uint8_t { fp64, fp32, tf32, bf16, fp16, fp8, fp4, int8, other };
inline constexpr std::size_t dtype_count = 9;

/// "bf16": the spelling in all files, options, and messages.
std::string_view to_string(Dtype dtype);

/// Reads our names, those of torch ("bfloat16", "float8_e4m3fn", "half", "torch.float32"), and
/// those of trainers' settings ("bf16-mixed", "FP8-MX").
std::optional<Dtype> parse_dtype(std::string_view text);

/// Bits of one element in memory (32 for tf32, 16 for bf16); 32 for `other`.
constexpr int storage_bits(Dtype dtype) {
  constexpr std::array<int, dtype_count> bits = {64, 32, 32, 16, 16, 8, 4, 8, 32};
  return bits[static_cast<std::size_t>(dtype)];
}

}  // namespace flopmeter
