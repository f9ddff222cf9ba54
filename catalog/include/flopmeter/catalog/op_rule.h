// SPDX-License-Identifier: Apache-2.0
//
// Operators by their dispatcher names: how the arguments of a call become an operation of the
// rulebook, and so a price.  An adapter (live) or a trace reader (later) hands over names and
// arguments and holds no list of its own.  To add an operator, add a file to catalog/ops.
#pragma once

#include <flopmeter/core/dtype.h>
#include <flopmeter/core/flop_source.h>
#include <flopmeter/core/units.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace flopmeter {

/// One argument of an operator call, by its position in the operator's schema.  Refers to the
/// caller's memory.
struct Arg {
  enum class Kind : std::uint8_t { none, tensor, integer, list };
  Kind kind = Kind::none;      ///< none: absent, or of a type that no rule reads
  Dtype dtype = Dtype::other;  ///< of a tensor
  bool complex = false;        ///< of a tensor: each multiply-add is four real ones
  std::uint8_t rank = 0;       ///< extents of a tensor, or elements of a list
  const std::int64_t* values = nullptr;
  std::int64_t integer = 0;  ///< an integer or a flag

  static constexpr Arg tensor(std::span<const std::int64_t> extents, Dtype type = Dtype::fp32) {
    return {.kind = Kind::tensor,
            .dtype = type,
            .rank = static_cast<std::uint8_t>(extents.size()),
            .values = extents.data()};
  }
  static constexpr Arg number(std::int64_t value) {
    return {.kind = Kind::integer, .integer = value};
  }
  static constexpr Arg list(std::span<const std::int64_t> items) {
    return {.kind = Kind::list,
            .rank = static_cast<std::uint8_t>(items.size()),
            .values = items.data()};
  }

  [[nodiscard]] constexpr bool is_tensor(int of_rank) const {
    return kind == Kind::tensor && rank == of_rank;
  }
  /// Extent or element `i`, counted from the end when negative.
  [[nodiscard]] constexpr std::int64_t operator[](int i) const {
    return values[i < 0 ? rank + i : i];
  }
  /// Number of elements of a tensor.
  [[nodiscard]] constexpr WideInt elements() const {
    WideInt product = 1;
    for (int i = 0; i < rank; ++i) product *= values[i];
    return product;
  }
};

/// A call as it happened.
struct OpCall {
  std::span<const Arg> args;
  Arg output;  ///< the first tensor that came back
};

/// What a call cost.
struct OpCost {
  Flops executed;  ///< what the kernel did
  Flops model;     ///< what the model's mathematics needs of it
  Bytes bytes;     ///< least memory traffic: operands read once, results written once
  AttentionPairs pairs = AttentionPairs::none;
};

/// The price of one operator.  Empty where the arguments do not fit.
struct OpRule {
  std::string_view name;  ///< as the dispatcher says it, without overload: "aten::mm"
  std::optional<OpCost> (*price)(const OpCall& call) = nullptr;
  /// The argument whose dtype is the compute dtype.
  int dtype_argument = 0;
  /// Set on operators whose work a product of activations, so perhaps eager attention, may hide
  /// behind.
  bool hides_attention = false;
};

/// A call worked out by hand, run as a test.
struct OpExample {
  std::string_view op;
  OpCall call;
  WideInt executed = 0;
  WideInt model = 0;
};

/// One file of catalog/ops: operators that are priced alike.
struct OpFamily {
  std::string_view name;
  std::string_view help;
  std::string_view source;  ///< where the formula is from
  std::span<const OpRule> rules;
  std::span<const OpExample> examples;
};

std::span<const OpFamily* const> op_families();

/// The rule for a dispatcher name ("aten::mm", with or without ".out"); null where there is none.
const OpRule* find_op_rule(std::string_view name);

}  // namespace flopmeter
