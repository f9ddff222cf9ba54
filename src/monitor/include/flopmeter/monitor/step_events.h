// SPDX-License-Identifier: Apache-2.0
//
// StepEvent: what hooks, loaders, and framework integrations report about a training loop.  They
// only report; the monitor's step tracker decides where a step begins and ends.
#pragma once

#include <flopmeter/core/flop_estimator.h>
#include <flopmeter/core/phase.h>
#include <flopmeter/core/step_record.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace flopmeter {

/// Properties of a step that are known when it begins.  All are optional; spans are read before the
/// call returns.
struct StepInput {
  std::optional<std::int64_t> samples{};
  std::optional<std::int64_t> tokens{};  ///< real tokens; default: the sum of sequence_lengths
  std::optional<std::int64_t> padded_tokens{};
  std::optional<std::int64_t> visual_tokens{};
  std::optional<std::int64_t> step{};  ///< the loop's own number; default: the last one plus one
  std::optional<std::int32_t> epoch{};
  StepTag tag = StepTag::train;
  std::span<const std::int64_t> sequence_lengths{};  ///< real length of each sequence
  std::int64_t padded_length = 0;
  std::span<const ImageGrid> images{};
  std::optional<Flops> flops{};  ///< the caller's own figure, used as it is
  Dtype flops_dtype = Dtype::bf16;
};

/// Properties of a step that are known when it ends.
struct StepOutcome {
  std::optional<double> loss{};
  std::optional<double> grad_norm{};
  std::optional<double> learning_rate{};
  /// Start and end on the monotonic clock in nanoseconds, if the caller measured the time itself.
  /// Time before and after is not part of the step, and the step has no phases.
  std::optional<std::pair<std::int64_t, std::int64_t>> interval{};
  /// The batch in place of the one so far, if it is known only now; read before the call returns.
  const StepInput* batch = nullptr;
};

/// Definition of a step.
enum class StepPolicy : std::uint8_t {
  explicit_marks,      ///< the loop calls begin_step() and end_step()
  per_batch,           ///< each batch of the loader is a step
  per_optimizer_step,  ///< a step ends with its last optimizer step; their number is learned
  framework,           ///< an integration reports the steps; time between them is the next step's
};

enum class StepEventKind : std::uint8_t {
  loop_begin,  ///< of a wrapped loader, or of the training
  loop_end,
  fetch_begin,  ///< the loop requests a batch from its loader
  fetch_end,
  forward_begin,
  forward_end,
  backward_begin,
  backward_end,
  replay,  ///< a captured graph runs: forward and backward pass, or parts of them
  optimizer_begin,
  optimizer_end,
  evaluation_begin,
  evaluation_end,
  checkpoint_begin,
  checkpoint_end,
  generation_begin,
  generation_end,
  batch_begin,  ///< a framework starts to train on a batch
  batch_end,
  epoch_end,
};

/// Whether the backward pass that follows a forward pass will be reported.
enum class BackwardReport : std::uint8_t {
  none,      ///< no gradient flows back from the output
  reported,  ///< by backward_begin and backward_end
  unseen,    ///< not reported: assumed to run from the end of the forward pass on
};

/// One report.  Fields that do not belong to the kind are ignored.
struct StepEvent {
  StepEventKind kind = StepEventKind::loop_begin;
  bool training = true;    ///< forward: the model is in training mode
  bool gradients = true;   ///< forward, loop_begin: gradients are enabled
  bool has_batch = false;  ///< fetch_end: the loader hands over the batch that describe() describes
  bool closure = false;    ///< optimizer_begin: forward and backward run inside the optimizer step
  std::uintptr_t loader = 0;  ///< fetch_begin: the loader's iterator; 0: not known
  BackwardReport backward = BackwardReport::none;      ///< forward_end
  StepPolicy policy = StepPolicy::per_optimizer_step;  ///< loop_begin
  const StepOutcome* outcome = nullptr;                ///< batch_end
  /// forward_begin, fetch_end, batch_begin: describes the batch; generation_end: what was
  /// generated; loop_begin: gives the first step; called only if it is needed.  The result must
  /// stay valid until the event returns; null: nothing is known.
  const StepInput* (*describe)(void* context) = nullptr;
  /// forward_begin: whether a backward pass began in any thread since the last forward pass.
  bool (*backward_begun)(void* context) = nullptr;
  /// optimizer_end: whether the optimizer updates parameters of the monitored model.
  bool (*owns)(void* context) = nullptr;
  void* context = nullptr;
};

/// Actions and messages after an event.
struct StepReply {
  bool step_ended = false;
  bool model_lost = false;    ///< optimizers step without the model: look for another one
  bool not_training = false;  ///< loop_begin: this loop trains nothing; report nothing about it
  bool no_optimizer = false;  ///< no optimizer steps: from now on each backward pass is a step
  bool step_discarded =
      false;  ///< an evaluation began inside an accumulation: no record of the step
};

}  // namespace flopmeter
