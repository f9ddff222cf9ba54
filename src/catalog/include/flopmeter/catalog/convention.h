// SPDX-License-Identifier: Apache-2.0
//
// Conventions: what counts as model FLOPs.  Each preset reproduces the convention of a tool or
// paper that publishes MFU; every record names its convention.  To add one, add a file to
// src/catalog/conventions.
#pragma once

#include <flopmeter/catalog/cost_model.h>
#include <flopmeter/core/result.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace flopmeter {

/// One step under a convention.
struct Counted {
  Breakdown parts;                ///< forward and backward: the model's FLOPs
  std::optional<Flops> hardware;  ///< if the convention defines executed FLOPs differently
};

/// Model of the worked examples: one layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32; one
/// sequence of s = T = 4.  N = 1112, of which 256 are the input embedding; weights of matmuls 192 +
/// 384 + 256 = 832; attention forward 4 s^2 n d = 512, causal half 256, exact 2 (4 * 5) n d = 320.
inline constexpr std::string_view convention_example_config =
    R"({"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 16, "vocab_size": 32})";

/// Training FLOPs computed by hand; a test compares them with the convention's.
struct ConventionExample {
  std::int64_t model_flops = 0;  ///< of `convention_example_config`
  std::int64_t bare_flops = 0;   ///< 1,000,000 parameters, 10 tokens; 0 if it needs operations
};

struct Convention {
  std::string_view name;
  std::string_view help;
  std::string_view source;
  /// `model` has a list of operations; a bare model has parameters only.
  Counted (*count)(const Model& model, const Batch& batch, const Training& training) = nullptr;
  bool needs_operations = true;  ///< false: parameters are enough
  ConventionExample example;
};

std::span<const Convention* const> conventions();
const Convention* find_convention(std::string_view name);
/// Same, with an error that suggests similar names.
Result<const Convention*> convention_called(std::string_view name);

}  // namespace flopmeter
