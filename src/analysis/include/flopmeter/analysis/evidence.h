// SPDX-License-Identifier: Apache-2.0
//
// Evidence: all that is known about a bucket of one rank's training, and what it adds up to.
#pragma once

#include <flopmeter/core/op_profile.h>
#include <flopmeter/core/peak_table.h>
#include <flopmeter/core/step_record.h>
#include <flopmeter/analysis/straggler.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace flopmeter {

/// One rank of the same run over the same bucket.
struct RankFigures {
  int rank = 0;
  double step_seconds = 0;           ///< mean
  double communication_seconds = 0;  ///< mean
  double flops_per_second = 0;  ///< model FLOPs over the time outside communication; 0: unknown
  Verdict verdict = Verdict::normal;
  std::vector<double> work_seconds;  ///< outside communication, of the steps that all ranks have

  [[nodiscard]] double work() const { return step_seconds - communication_seconds; }
};

/// Ranks side by side, judged as `flopmeter ranks` judges them.
std::vector<RankFigures> compare_ranks(std::span<const RankWindows> ranks,
                                       const StragglerOptions& options = {});

/// Seconds of a step that a rank is earlier than the one that works longest, which is another one
/// from step to step; 0 where the rank is not among them.
double wait_for_last(std::span<const RankFigures> ranks, int rank);

/// A window of one rank's records and what belongs to it.
struct Evidence {
  std::vector<StepRecord> steps;  ///< of all tags, oldest first
  PeakTable peaks;
  std::vector<OpProfile> profiles;
  std::vector<RankFigures> ranks;      ///< all ranks, this one too; empty: only this one is known
  std::optional<int> pipeline_stages;  ///< where the run says so
  std::optional<int> processors;       ///< that the rank may use
  std::optional<std::int64_t> memory_capacity_bytes;  ///< of the device
};

/// Integer nanoseconds and counts of a window.  Every nanosecond of `total` is in exactly one of
/// the times below it.
struct Sums {
  std::int64_t steps = 0;  ///< train steps
  std::int64_t total = 0;  ///< train steps, what lies between them, checkpoints and evaluations
  std::int64_t forward = 0, backward = 0, optimizer = 0, data = 0, communication = 0;
  std::int64_t checkpoint = 0, evaluation = 0;
  std::int64_t other = 0;    ///< of the steps, in no phase
  std::int64_t between = 0;  ///< from one step to the next
  bool phased = false;       ///< forward or backward was marked

  std::int64_t ideal = 0;           ///< model FLOPs at the peaks of their own dtypes
  std::int64_t ideal_best = 0;      ///< and at the best peak the run could have used
  std::int64_t measured = 0;        ///< train steps with an MFU
  double recorded_mfu = 0;          ///< of the train steps, as the records have it
  double useful_share = 1;          ///< of the work: tokens over padded tokens
  std::optional<Dtype> own_dtype;   ///< of most FLOPs
  std::optional<Dtype> best_dtype;  ///< the faster one, where there is one
  double hardware_flops = 0, recompute_flops = 0;
  std::int64_t samples = 0, tokens = 0, micro_batches = 0;
  std::int64_t data_wait_samples = 0, data_wait_busy_samples = 0;
  int devices = 1;
};

/// Adds a window up; tagged steps (warmup, compile, profile) are left out.
Sums summarize(const Evidence& evidence);

/// What the profiles of a window say about a step, in seconds.
struct OpTimes {
  int profiles = 0;
  bool on_device = false;
  double recompute = 0;  ///< computing activations again, with the time between its operators; in
                         ///< none of those below
  double compute = 0;     ///< operators that bear FLOPs, outside the optimizer
  double memory = 0;     ///< that move data, each call long enough to matter
  double small = 0;      ///< that their launch outweighs
  double unknown = 0;
  double between = 0;          ///< without an operator, on the way from one to the next
  double pauses = 0;           ///< without an operator for longer than that; in none of the others
  double in_other = 0;         ///< part of the operators' time outside forward and backward
  double copies = 0;           ///< between host and device; in none of the above
  double starting_small = 0;   ///< part of the small ones' time that only starts their calls
  double starting_others = 0;  ///< the same of all others but the linears
  double calls = 0;            ///< outside the optimizer, without those that compute again
  double flops = 0;            ///< executed by the compute ones

  /// All that was seen of forward and backward.
  [[nodiscard]] double seen() const {
    return recompute + compute + memory + small + unknown + between;
  }
};
OpTimes op_times(const Evidence& evidence);

/// Whether it multiplies all rows of a batch with one matrix.
bool is_linear(const OpProfileRow& row);

/// Whether launching the row's calls outweighs their work.
bool is_small(const OpProfileRow& row);

/// Seconds of the row that only start its calls, at least.
double starting_of(const OpProfileRow& row);

/// The profiles with each operator's time as it was in the middle one of them, and all operators
/// together as in the middle one: what another program on the machine added to one of them is left
/// out.
std::vector<OpProfile> typical(std::vector<OpProfile> profiles);

}  // namespace flopmeter
