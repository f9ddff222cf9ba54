// SPDX-License-Identifier: Apache-2.0
//
// Exact counts of what PyTorch executes.  Only operators that execute FLOPs are intercepted; all
// others run unchanged.  C++ programs include <flopmeter/torch/op_counter.h>, which also connects
// the adapter.
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

/// An operator that ran with arguments for which no FLOP cost is known.
struct UnsupportedOp {
  std::string name;
  std::uint64_t calls = 0;
};

/// The work between two moments, in all threads of the process.
struct Counts {
  FlopTotals totals;
  std::vector<CountRow> ops;      ///< without empty rows
  std::vector<CountRow> modules;  ///< if modules were counted; "" is work outside of all modules
  std::vector<UnsupportedOp> unsupported;

  /// The numerator of MFU: forward and backward work of the model, without recomputation.
  [[nodiscard]] std::uint64_t model_flops() const;
  /// The numerator of HFU: everything that the kernels executed.
  [[nodiscard]] std::uint64_t hardware_flops() const;
  [[nodiscard]] std::uint64_t hardware_flops(Pass pass) const;
  [[nodiscard]] std::uint64_t hardware_flops(Dtype dtype) const;
  [[nodiscard]] AttentionPairs attention_pairs() const;
};

/// Counts what runs in any thread while it is alive.  Counters may overlap and nest without
/// affecting each other.  The first one of a process intercepts the dispatcher: create it before
/// other threads run operators.
class OpCounter {
 public:
  /// With `modules`, work is also attributed to the module that ModuleScope names.  Throws
  /// std::runtime_error if counting is not possible.
  explicit OpCounter(bool modules = false);
  ~OpCounter();
  OpCounter(const OpCounter&) = delete;
  OpCounter& operator=(const OpCounter&) = delete;
  OpCounter(OpCounter&&) = delete;
  OpCounter& operator=(OpCounter&&) = delete;

  /// The work since construction, or between it and stop().
  [[nodiscard]] Counts counts() const;
  /// Ends counting; counts() does not change after it.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Work that is captured once and replayed without its operators (CUDA graphs).
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
  /// Adds the region's counts `times` times to every counter that is alive.
  void replayed(std::uint64_t times);
  /// Ends the capture and takes its counts out of every counter: a capture does not execute.
  void discard();
  [[nodiscard]] Counts counts() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A user's rule for an operator: FLOPs, or empty if the arguments do not fit.
using UserRule = std::function<std::optional<Flops>(const OpCall& call)>;

/// Counts the dispatcher operator `name` ("mylib::fused_mlp") by `rule` until the process ends; a
/// later rule replaces an earlier one.  Operators that it calls are then not counted again.
Result<void> register_op(const std::string& name, UserRule rule);

/// The same for work that does not pass the dispatcher: a Python function or Triton kernel
/// ("mylib.kernels::fused_mlp").  Its interceptor counts it by this name.
Result<void> register_function(const std::string& name, UserRule rule);

/// Intercepts the dispatcher and tests that a small matmul counts.  The first OpCounter does this
/// as well, and throws std::runtime_error if it fails.
Result<void> install_op_counter();

/// Work without a FLOP cost since the process began.
std::vector<UnsupportedOp> unsupported_ops();

/// Names of the operators that are intercepted, with overload.
std::vector<std::string> intercepted_ops();

/// The operators of this process as a counter for the monitor.
class TorchFlopCounter final : public FlopCounter {
 public:
  /// With `replicated`, work inside replicated_module() is also summed separately.  `note` is
  /// static text for note().
  explicit TorchFlopCounter(bool replicated = false, std::string_view note = {});
  ~TorchFlopCounter() override;
  TorchFlopCounter(const TorchFlopCounter&) = delete;
  TorchFlopCounter& operator=(const TorchFlopCounter&) = delete;
  TorchFlopCounter(TorchFlopCounter&&) = delete;
  TorchFlopCounter& operator=(TorchFlopCounter&&) = delete;

  [[nodiscard]] std::string_view name() const override { return "torch"; }
  [[nodiscard]] std::string_view note() const override { return note_; }
  [[nodiscard]] FlopTotals snapshot() const override;
  void enable(bool on) override;
  [[nodiscard]] std::uint64_t late_calls() const noexcept override;
  FlopTotals late_work(std::uint64_t first, std::uint64_t last) noexcept override;
  [[nodiscard]] double nanoseconds_per_call() const override;
  [[nodiscard]] std::string_view unsupported_note() const override;
  bool begin_profile() override;
  std::optional<OpProfile> end_profile() override;

 private:
  bool enabled_ = false;
  std::string_view note_;
  std::uint32_t replicated_ = 0;  ///< replicated_module(), or 0
  std::unique_ptr<class OpProfiler> profile_;
};

}  // namespace flopmeter
