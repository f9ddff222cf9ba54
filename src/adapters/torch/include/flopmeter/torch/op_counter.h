// SPDX-License-Identifier: Apache-2.0
//
// Exact counts of what PyTorch executes.  The dispatcher is intercepted once, for the operators
// that bear FLOPs only; everything else runs as if this library were not there.
//
//   flopmeter::OpCounter counter;
//   model->forward(x).sum().backward();
//   auto counts = counter.counts();            // counts.model_flops(), counts.hardware_flops(),
//   ...
#pragma once

#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/core/flop_counter.h>
#include <flopmeter/core/result.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Work of one operator (or module) in one dtype and pass.
struct CountRow {
  std::string name;
  Dtype dtype = Dtype::other;  ///< `other` in rows of modules, which mix dtypes
  Pass pass = Pass::forward;
  std::uint64_t calls = 0;
  std::uint64_t executed = 0;
  std::uint64_t model = 0;
};

/// An operator that was seen and could not be supported.
struct UnknownOp {
  std::string name;
  std::uint64_t calls = 0;
};

/// What ran between two moments, in all threads of the process.
struct Counts {
  FlopTotals totals;
  std::vector<CountRow> ops;      ///< without empty rows
  std::vector<CountRow> modules;  ///< when modules were counted; "" holds what belongs to none
  std::vector<UnknownOp> unknown_ops;

  /// MFU's numerator: forward and backward as the model needs them, recompute left out.
  [[nodiscard]] std::uint64_t model_flops() const;
  /// HFU's numerator: everything the kernels did.
  [[nodiscard]] std::uint64_t hardware_flops() const { return executed(); }
  [[nodiscard]] std::uint64_t executed() const;
  [[nodiscard]] std::uint64_t executed(Pass pass) const;
  [[nodiscard]] std::uint64_t executed(Dtype dtype) const;
  [[nodiscard]] AttentionPairs attention_pairs() const;
};

/// Counts whatever runs in any thread while it is alive.  Counters may overlap and nest; none
/// disturbs another. The first one of a process intercepts the dispatcher, and should be made
/// before other threads run operators.
class OpCounter {
 public:
  /// With `modules`, work is also attributed to the module that ModuleScope names.
  explicit OpCounter(bool modules = false);
  ~OpCounter();
  OpCounter(const OpCounter&) = delete;
  OpCounter& operator=(const OpCounter&) = delete;
  OpCounter(OpCounter&&) = delete;
  OpCounter& operator=(OpCounter&&) = delete;

  /// What ran since construction, or between it and stop().
  [[nodiscard]] Counts counts() const;
  /// Ends counting; counts() stays what it is.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A bucket of work that is captured once and replayed without its operators (CUDA graphs).
class Region {
 public:
  Region();
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  Region(Region&&) = delete;
  Region& operator=(Region&&) = delete;

  /// The end of the capture.
  void stop();
  /// Adds what the region counted `times` more to every counter that is alive.
  void replayed(std::uint64_t times);
  [[nodiscard]] Counts counts() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A user's flop_cost for an operator: FLOPs, or empty where the arguments do not fit.
using UserRule = std::function<std::optional<Flops>(const OpCall& call)>;

/// Costs the dispatcher operator `name` ("mylib::fused_mlp"), from now on and for ever; a later
/// rule replaces an earlier one.  What the operator calls inside is then not counted again.
Result<void> register_op(const std::string& name, UserRule rule);

/// Intercepts the dispatcher and tests that a small product counts.  Done by the first OpCounter as
/// well, which throws std::runtime_error where this returns an Error.
Result<void> install_op_counter();

/// Names of the operators that are intercepted, with overload.
std::vector<std::string> intercepted_ops();

/// The op stream as the monitor sees it.
class TorchFlopCounter final : public FlopCounter {
 public:
  /// With `replicated`, work inside replicated_module() is told apart.
  explicit TorchFlopCounter(bool replicated = false);
  ~TorchFlopCounter() override;
  TorchFlopCounter(const TorchFlopCounter&) = delete;
  TorchFlopCounter& operator=(const TorchFlopCounter&) = delete;
  TorchFlopCounter(TorchFlopCounter&&) = delete;
  TorchFlopCounter& operator=(TorchFlopCounter&&) = delete;

  [[nodiscard]] std::string_view name() const override { return "torch"; }
  [[nodiscard]] FlopTotals snapshot() const override;
  void enable(bool on) override;
  [[nodiscard]] double nanoseconds_per_call() const override;
  bool begin_profile() override;
  std::optional<OpProfile> end_profile() override;

 private:
  bool enabled_ = false;
  std::uint32_t replicated_ = 0;  ///< the module, or none
  std::unique_ptr<class OpProfiler> profile_;
};

}  // namespace flopmeter
