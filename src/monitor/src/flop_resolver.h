// SPDX-License-Identifier: Apache-2.0
//
// FlopResolver: sets the FLOPs of a record from a count, a calibration, an estimate, or a counter,
// and records the source.  Runs on the writer thread.
#pragma once

#include "measure_plan.h"
#include "shape_fit.h"
#include "slot.h"

#include <flopmeter/core/world.h>
#include <flopmeter/monitor/monitor.h>
#include <flopmeter/monitor/options.h>

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

namespace flopmeter {

/// Sets the FLOPs of a record, and reads them.
void set_flops(StepRecord& record, const FlopEstimate& flops, FlopsProvenance source);
FlopEstimate flops_of(const StepRecord& record);

class FlopResolver {
 public:
  FlopResolver(Options options, const Connections& connections, MeasurePlan& plan)
      : options_(std::move(options)),
        estimator_(connections.estimator),
        model_flops_(connections.model_flops),
        world_(connections.world),
        plan_(plan) {}

  void resolve(Slot& slot);
  /// Hardware counters are available: the dtype of their FLOPs, and known over counted FLOPs.
  void set_counters(Dtype dtype, double factor);
  /// Hardware counters are not available; the reason is static text.
  void no_counters(std::string_view reason);

 private:
  /// A count of one shape.
  struct Measured {
    FlopEstimate flops;
    std::int64_t process_step = 0;
  };

  void choose(Slot& slot);
  std::optional<FlopEstimate> estimate(const Slot& slot);
  [[nodiscard]] std::optional<FlopEstimate> predict(const Slot& slot,
                                                    const std::optional<FlopEstimate>& estimated);
  /// If a count with padding or masked pairs equals the estimate to the integer, the model FLOPs
  /// are those of the estimate for the real lengths; otherwise the count of a padded batch is an
  /// upper bound.
  void exclude_masked_work(StepRecord& record, const FlopEstimate& estimated) const;
  void learn(Slot& slot, const std::optional<FlopEstimate>& estimated);
  void use_estimate(Slot& slot, FlopEstimate estimated);
  void use_count(Slot& slot, const std::optional<FlopEstimate>& estimated, bool trains);
  void use_mode(Slot& slot, const std::optional<FlopEstimate>& estimated, bool trains);
  void use_counters(StepRecord& record, double counted) const;
  void calibrated(Slot& slot, const std::optional<FlopEstimate>& estimated);

  Options options_;
  const FlopEstimator* estimator_;
  ModelFlops model_flops_;
  World world_;
  MeasurePlan& plan_;
  std::unordered_map<std::uint64_t, FlopEstimate> estimates_;
  std::unordered_map<std::uint64_t, Measured> measured_;
  ShapeFit fit_;
  std::optional<double> factor_;  ///< measured over estimated at the last comparison
  std::int64_t last_measured_ = 0;
  bool user_states_flops_ = false;  ///< of some steps
  int right_predictions_ = 0;
  Dtype counter_dtype_ = Dtype::fp32;
  double counter_factor_ = 1;
  std::string_view counter_reason_;
};

}  // namespace flopmeter
