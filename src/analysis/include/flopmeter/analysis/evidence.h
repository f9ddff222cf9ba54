// SPDX-License-Identifier: Apache-2.0
//
// Evidence: everything that is known about a run or a window of it, and what its operator profiles
// show.
#pragma once

#include <flopmeter/analysis/straggler.h>
#include <flopmeter/analysis/time_budget.h>
#include <flopmeter/catalog/published.h>
#include <flopmeter/core/op_profile.h>
#include <flopmeter/core/peak_table.h>
#include <flopmeter/core/step_record.h>
#include <flopmeter/core/step_totals.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace flopmeter {

/// One rank of the same run over the same steps.
struct RankFigures {
  int rank = 0;
  double step_seconds = 0;           ///< mean
  double communication_seconds = 0;  ///< mean
  double flops_per_second = 0;  ///< model FLOPs over the time outside communication; 0: unknown
  Verdict verdict = Verdict::normal;
  std::vector<double> work_seconds;  ///< outside communication, of the steps that all ranks have

  [[nodiscard]] double work() const { return step_seconds - communication_seconds; }
};

/// Compares ranks as `flopmeter ranks` does.
std::vector<RankFigures> compare_ranks(std::span<const RankWindows> ranks,
                                       const StragglerOptions& options = {});

/// Seconds per step by which a rank finishes its work before the last rank, which may differ from
/// step to step; 0 if the rank is not among them.
double wait_for_last(std::span<const RankFigures> ranks, int rank);
/// The mean of it over all ranks.
double wait_for_last(std::span<const RankFigures> ranks);

/// Known properties of a run or a window of it.
struct Evidence {
  std::vector<StepRecord> steps;     ///< newest records of one rank and of all tags, oldest first
  std::optional<StepTotals> totals;  ///< of all steps; empty: those of `steps`
  std::optional<int> rank;           ///< that the totals are of; empty: of all ranks in `ranks`
  PeakTable peaks;
  std::vector<OpProfile> profiles;
  std::optional<DeviceTime> device;  ///< from device marks or a trace
  std::vector<RankFigures> ranks;    ///< all ranks; empty: only one is known
  std::optional<int> pipeline_stages;
  std::optional<int> processors;                      ///< that the rank may use
  std::optional<std::int64_t> memory_capacity_bytes;  ///< of the device
  std::optional<PublishedQuery> similar;              ///< kind and size of the model, if known
};

/// The totals of the evidence.
StepTotals summarize(const Evidence& evidence);

/// Seconds of a mean train step that the host lost, summed over `lost`.  0 if a device was timed:
/// waits of its host need not delay a step.
double host_seconds_per_step(const Evidence& evidence,
                             std::initializer_list<double StepTotals::*> lost);

/// Dtype of most executed FLOPs; empty if none is known.
std::optional<Dtype> main_dtype(const StepTotals& totals);

/// The fastest dtype that a run in `own` may change to and keep its mathematics; empty if its own
/// is.
std::optional<Dtype> faster_dtype(const PeakTable& peaks, Dtype own);

/// A mean step by the operator profiles, in seconds.
struct OpTimes {
  int profiles = 0;
  bool on_device = false;
  bool device_times = false;  ///< those of kernels, by events
  double kernels = 0;         ///< in device times: of all phases, without copies and communication
  double optimizer = 0;       ///< in device times: part of `kernels`
  double communication = 0;   ///< in device times: exposed; in none of those below
  double recompute = 0;  ///< activation recomputation, with its idle time; in none of those below
  double compute = 0;    ///< operators with FLOPs, outside the optimizer
  double memory = 0;     ///< operators that move data, each call longer than its launch
  double small = 0;      ///< operators shorter than their launch
  double unknown = 0;    ///< unsupported operators
  double between = 0;    ///< from one operator to the next
  double stalls = 0;     ///< longer idle times; in none of the others
  double in_other = 0;   ///< part of the operators' time outside forward and backward
  double copies = 0;     ///< between host and device; in none of the above
  double starting_small = 0;   ///< part of `small` that only starts calls
  double starting_others = 0;  ///< the same of all others except linear layers
  double calls = 0;            ///< outside the optimizer, without recomputation
  double flops = 0;            ///< executed by `compute`

  /// The operators' times are those of a host that only enqueues their work.
  [[nodiscard]] bool kernels_unknown() const { return on_device && !device_times; }
  /// Profiled time of forward and backward.
  [[nodiscard]] double seen() const {
    return recompute + compute + memory + small + unknown + between;
  }
};
OpTimes op_times(const Evidence& evidence);

/// Whether the row multiplies all rows of a batch by one matrix.
bool is_linear(const OpProfileRow& row);

/// Whether launching the row's calls takes longer than their work.
bool is_small(const OpProfileRow& row);

/// Least seconds of the row that only start its calls.
double starting_of(const OpProfileRow& row);

/// The profiles with the median time of each operator and the median time of all operators
/// together, which removes what other load added to one of them.  If some have device times, the
/// others are omitted.
std::vector<OpProfile> typical(std::vector<OpProfile> profiles);

}  // namespace flopmeter
