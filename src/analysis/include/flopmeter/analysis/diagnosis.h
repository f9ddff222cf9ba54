// SPDX-License-Identifier: Apache-2.0
//
// The time budget of a run, and what the rules find in it.
#pragma once

#include <flopmeter/analysis/evidence.h>
#include <flopmeter/analysis/time_budget.h>
#include <flopmeter/core/finding.h>
#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/result.h>

#include <optional>
#include <string>
#include <vector>

namespace flopmeter {

struct Diagnosis {
  StepTotals totals;
  TimeBudget budget;
  std::vector<Finding> findings;    ///< largest first; those without a size last
  std::optional<Finding> together;  ///< what-if of all findings, if there are two or more
  std::string peak;                 ///< dtype of the peak that MFU is measured against
  std::string device;
  std::string
      no_mfu;  ///< why MFU is not known: "the fp64 peak of TPU v5e is not known"; else empty
  std::optional<PublishedComparison> published;  ///< empty: the model is not known

  [[nodiscard]] std::optional<double> mfu() const { return totals.mfu(); }
};

/// An error if there is no train step.
Result<Diagnosis> diagnose(const Evidence& evidence);

/// The cause that a finding is about: its rule's, else the one that it saves most of; empty if it
/// saves nothing.
std::string_view cause_of(const Finding& finding);

/// The largest cause other than `useful`; null if there is none.
const BudgetLine* largest_loss(const TimeBudget& budget);

/// "MFU 16.3 % of the fp32 peak; the largest loss is waiting for data: 51.1 % of the time", with
/// the published results of similar runs if there are any.
std::string verdict(const Diagnosis& diagnosis);

/// Price of the run's devices.
struct DeviceCost {
  double per_device_hour = 0;
  int devices = 1;  ///< of all ranks
};

/// The object that `flopmeter diagnose --json` prints.
void write_json(JsonWriter& json,
                const Diagnosis& diagnosis,
                const std::optional<DeviceCost>& cost = std::nullopt);

/// The budget as an array of {cause, seconds, share}.
void write_json(JsonWriter& json, const TimeBudget& budget);

/// One cause in two runs.
struct Change {
  Cause cause;
  double before = 0;  ///< seconds of a mean step
  double after = 0;
  [[nodiscard]] double difference() const { return after - before; }
};
/// All causes, largest change first; the changes sum to the difference of the step times.
std::vector<Change> compare(const Diagnosis& before, const Diagnosis& after);

}  // namespace flopmeter
