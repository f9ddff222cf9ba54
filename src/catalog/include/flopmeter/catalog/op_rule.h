// SPDX-License-Identifier: Apache-2.0
//
// Operators by name: maps the arguments of a call to an operation of the cost model (operations.h),
// and so to a FLOP cost.  Dispatcher operators, Python functions, compiled graphs, and traces pass
// names and arguments and have no lists.  To add an operator, add a file to src/catalog/ops.
#pragma once

#include <flopmeter/core/dtype.h>
#include <flopmeter/core/flop_counter.h>
#include <flopmeter/core/units.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace flopmeter {

/// One argument of an operator call, by its position in the operator's schema.  Refers to the
/// caller's memory.
// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): one member initializes the union.
struct Arg {
  enum class Kind : std::uint8_t { none, tensor, integer, list, tensors };
  Kind kind = Kind::none;      ///< none: missing, or of a type that no rule reads
  Dtype dtype = Dtype::other;  ///< of a tensor
  bool complex = false;        ///< of a tensor: each multiply-add is four real ones
  std::int32_t rank = 0;       ///< number of extents of a tensor, or of elements of a list
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
  /// Extent or element `i`; from the end if negative.
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

/// An operator call.
struct OpCall {
  std::span<const Arg> args;
  Arg output;  ///< first tensor of the result; few rules need it

  /// Argument `i`; none beyond the last.
  [[nodiscard]] constexpr Arg arg(int i) const {
    const auto at = static_cast<std::size_t>(i);
    return at < args.size() ? args[at] : Arg{};
  }
};

/// Cost of a call.
struct OpCost {
  Flops executed;  ///< executed by the kernel
  Flops model;     ///< required by the mathematics of the model
  Bytes bytes;     ///< minimum memory traffic: operands read once, results written once
  AttentionPairs pairs = AttentionPairs::none;
  bool bounded = false;  ///< an upper bound: only the device knows the number of rows
};

/// The keys that a query may use, around the diagonal of one sequence.
struct AttentionBand {
  std::int64_t left = -1;  ///< keys to the left of the diagonal; negative is unlimited
  std::int64_t right = -1;
  bool bottom_right = false;  ///< the diagonal ends at the last key, else it starts at the first

  [[nodiscard]] WideInt pairs(std::int64_t queries, std::int64_t keys) const;
};

/// Attention over packed sequences, or matmuls of groups of rows: the FLOPs follow from the values
/// of tensors.
struct PackedWork {
  int queries_at = 0;  ///< argument with the starts of the queries, or with the ends of the groups
  int keys_at = 0;     ///< argument with the starts of the keys; of groups the same
  OpCost unit;         ///< cost of one pair, or of one row
  AttentionBand band;
  bool backward = false;

  /// Empty if the values do not fit each other.
  [[nodiscard]] std::optional<OpCost> cost(std::span<const std::int64_t> query_starts,
                                           std::span<const std::int64_t> key_starts) const;
};

/// Where a version of a function that takes `arguments` arguments has those that a rule reads.
struct CallLayout {
  int arguments = 0;
  std::array<std::int8_t, 16> places{};  ///< by the rule's position; negative: not passed
  /// An argument that is a Boolean, which distinguishes versions with the same number; -1: none.
  int boolean = -1;
};

/// FLOP cost of one operator; empty if the arguments do not fit.
struct OpRule {
  /// Name in the dispatcher: "aten::mm" covers all overloads and the in-place form; a rule with an
  /// overload in its name ("aten::x.binary") takes precedence.  Of a Python function: its module,
  /// "::", and its name in the module.
  std::string_view name;
  std::optional<OpCost> (*flop_cost)(const OpCall& call) = nullptr;
  /// The argument whose dtype is the compute dtype.
  int dtype_argument = 0;
  /// The compute dtype of operators that convert that argument first.
  std::optional<Dtype> compute_dtype = {};
  /// Set for matmuls of activations, which may be eager attention.
  bool hides_attention = false;
  /// Set if a live counter ignores the operator: no FLOPs, or composed of operators with rules.
  bool offline = false;
  /// Set if operators inside are counted themselves: only a call without any is unsupported.
  bool open = false;
  /// Set for a Python function: calls of it do not pass the dispatcher.
  bool python = false;
  /// The position of the parameter with this name, or -1; null if positions are the same in all
  /// versions of the operator.
  int (*place_of)(std::string_view parameter) = nullptr;
  /// For functions whose parameters have no names: positions by the number of arguments.
  std::span<const CallLayout> layouts = {};
  /// Of a call whose pairs or rows are unknown: what the values of its tensors decide; null if
  /// nothing.
  std::optional<PackedWork> (*packed)(const OpCall& call) = nullptr;
};

/// Names of parameters by position, for OpRule::place_of: place_in<"x - A|a">.
template <std::size_t size>
struct ParameterNames {
  std::array<char, size> text{};
  // NOLINTNEXTLINE(google-explicit-constructor,modernize-avoid-c-arrays): a literal
  consteval ParameterNames(const char (&literal)[size]) {
    for (std::size_t i = 0; i < size; ++i) text[i] = literal[i];
  }
};

/// The position of `parameter` in a list such as "x - A|a" (alternatives of one position are
/// separated by "|"), or -1.
constexpr int place_in_list(std::string_view list, std::string_view parameter) {
  int place = 0;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find_first_of(" |", begin), list.size());
    if (list.substr(begin, end - begin) == parameter) return place;
    if (end < list.size() && list[end] == ' ') ++place;
    begin = end + 1;
  }
  return -1;
}
template <ParameterNames names>
int place_in(std::string_view parameter) {
  return place_in_list({names.text.data(), names.text.size() - 1}, parameter);
}

/// For operators whose work does not follow from shapes: no FLOP cost, so that their calls are
/// reported as unsupported.
std::optional<OpCost> unknown_cost(const OpCall& call);

/// Example computed by hand; a test compares it with the rule.
struct OpExample {
  std::string_view op;
  std::string_view call;  ///< as parse_op_call (op_call_text.h) reads it: "[2,3] [3,4]"
  WideInt executed = 0;
  WideInt model = 0;
  WideInt bytes = 0;
  AttentionPairs pairs = AttentionPairs::none;
  bool bounded = false;
};

/// Example of a kernel that executes what the model requires.
constexpr OpExample op_example(std::string_view op,
                               std::string_view call,
                               WideInt flops,
                               WideInt bytes,
                               AttentionPairs pairs = AttentionPairs::none) {
  return {
      .op = op, .call = call, .executed = flops, .model = flops, .bytes = bytes, .pairs = pairs};
}

/// One file of src/catalog/ops: operators with one formula.
struct OpFamily {
  std::string_view name;
  std::string_view help;
  std::string_view source;  ///< source of the formula
  std::span<const OpRule> rules;
  std::span<const OpExample> examples;
};

std::span<const OpFamily* const> op_families();

/// Rule for a dispatcher name, with or without overload ("aten::mm.out", "aten::addmm_"); null if
/// there is none.
const OpRule* find_op_rule(std::string_view name);

/// Rule for an operator of another library.  Attention has parameters named query, key, value, and
/// causal, and those of flash-attn for lengths or windows.  Attention without the latter, and an
/// operator whose name states that it multiplies ("mylib::fused_gemm"), get a rule without a cost.
/// Null if neither is familiar.
const OpRule* recognize_op(std::string_view name, std::span<const std::string_view> parameters);

/// FLOP cost of an unchecked call (a trace, the command line): empty if a size is negative or
/// larger than any machine, so that no count overflows.
std::optional<OpCost> checked_flop_cost(const OpRule& rule, const OpCall& call);

}  // namespace flopmeter
