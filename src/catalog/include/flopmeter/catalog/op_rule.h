// SPDX-License-Identifier: Apache-2.0
//
// Operators by their dispatcher names: how the arguments of a call become an operation of the
// rulebook, and so a flop_cost.  An adapter (live) or a trace reader (later) hands over names and
// arguments and holds no list of its own.  To add an operator, add a file to catalog/ops.
#pragma once

#include <flopmeter/core/dtype.h>
#include <flopmeter/core/flop_counter.h>
#include <flopmeter/core/units.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace flopmeter {

/// One argument of an operator call, by its position in the operator's schema.  Refers to the
/// caller's memory.
// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): one member initialises the union.
struct Arg {
  enum class Kind : std::uint8_t { none, tensor, integer, list, tensors };
  Kind kind = Kind::none;      ///< none: absent, or of a type that no rule reads
  Dtype dtype = Dtype::other;  ///< of a tensor
  bool complex = false;        ///< of a tensor: each multiply-add is four real ones
  std::int32_t rank = 0;  ///< extents of a tensor, elements of a list, tensors of a list of tensors
  union {
    const std::int64_t* values = nullptr;  ///< of a tensor or list
    const Arg* items;                      ///< of a list of tensors
    std::int64_t integer;                  ///< an integer or a flag
  };

  static constexpr Arg tensor(std::span<const std::int64_t> extents, Dtype type = Dtype::fp32) {
    return {.kind = Kind::tensor,
            .dtype = type,
            .rank = static_cast<std::int32_t>(extents.size()),
            .values = extents.data()};
  }
  static constexpr Arg number(std::int64_t value) {
    return {.kind = Kind::integer, .integer = value};
  }
  /// Integers or flags.
  static constexpr Arg list(std::span<const std::int64_t> items) {
    return {.kind = Kind::list,
            .rank = static_cast<std::int32_t>(items.size()),
            .values = items.data()};
  }
  static constexpr Arg tensors(std::span<const Arg> items) {
    return {.kind = Kind::tensors,
            .rank = static_cast<std::int32_t>(items.size()),
            .items = items.data()};
  }

  [[nodiscard]] constexpr bool is_tensor() const { return kind == Kind::tensor; }
  [[nodiscard]] constexpr bool is_tensor(int of_rank) const {
    return kind == Kind::tensor && rank == of_rank;
  }
  [[nodiscard]] constexpr bool is_list() const { return kind == Kind::list; }
  [[nodiscard]] constexpr bool is_number() const { return kind == Kind::integer; }
  [[nodiscard]] constexpr std::int64_t number_or(std::int64_t otherwise) const {
    return is_number() ? integer : otherwise;
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
  /// Bits of one element of a tensor.
  [[nodiscard]] constexpr int bits() const { return storage_bits(dtype) * (complex ? 2 : 1); }
};

/// A call as it happened.
struct OpCall {
  std::span<const Arg> args;
  Arg output;  ///< the first tensor that came back; few rules need it

  /// Argument `i`; none beyond those that were given.
  [[nodiscard]] constexpr Arg arg(int i) const {
    const auto at = static_cast<std::size_t>(i);
    return at < args.size() ? args[at] : Arg{};
  }
};

/// What a call cost.
struct OpCost {
  Flops executed;  ///< what the kernel did
  Flops model;     ///< what the model's mathematics needs of it
  Bytes bytes;     ///< least memory traffic: operands read once, results written once
  AttentionPairs pairs = AttentionPairs::none;
};

/// The flop_cost of one operator.  Empty where the arguments do not fit.
struct OpRule {
  /// As the dispatcher says it: "aten::mm" costs all overloads and the in-place form; a rule with
  /// an overload in its name ("aten::x.binary") goes before it.
  std::string_view name;
  std::optional<OpCost> (*flop_cost)(const OpCall& call) = nullptr;
  /// The argument whose dtype is the compute dtype.
  int dtype_argument = 0;
  /// The compute dtype of operators that convert that argument first.
  std::optional<Dtype> compute_dtype = {};
  /// Set on operators whose work a product of activations, so perhaps eager attention, may hide
  /// behind.
  bool hides_attention = false;
  /// Set where a live counter has nothing to see: no FLOPs, or made of operators that have rules
  /// themselves.
  bool offline = false;
};

/// For operators whose work no shape tells: no flop_cost at all, so that their calls are named as
/// unknown.
std::optional<OpCost> unknown_cost(const OpCall& call);

/// A call worked out by hand, run as a test.
struct OpExample {
  std::string_view op;
  std::string_view call;  ///< as parse_op_call (op_call_text.h) reads it: "[2,3] [3,4]"
  WideInt executed = 0;
  WideInt model = 0;
  WideInt bytes = 0;
  AttentionPairs pairs = AttentionPairs::none;
};

/// One file of catalog/ops: operators that are supported alike.
struct OpFamily {
  std::string_view name;
  std::string_view help;
  std::string_view source;  ///< where the formula is from
  std::span<const OpRule> rules;
  std::span<const OpExample> examples;
};

std::span<const OpFamily* const> op_families();

/// The rule for a dispatcher name, with or without overload ("aten::mm.out", "aten::addmm_"); null
/// where there is none.
const OpRule* find_op_rule(std::string_view name);

/// The flop_cost of a call that nobody has checked (a trace, the command line): empty where a size is
/// negative or beyond any machine, so that no count can overflow.
std::optional<OpCost> checked_flop_cost(const OpRule& rule, const OpCall& call);

}  // namespace flopmeter
