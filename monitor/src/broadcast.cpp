// SPDX-License-Identifier: Apache-2.0
#include "broadcast.h"

#include "flop_resolver.h"

#include <span>

namespace flopmeter {

std::optional<std::string> Broadcast::share(StepRecord& record) {
  if (record.effective_step <= last_step_)
    return std::nullopt;  // beside a step, or none of its own
  std::optional<std::string> trouble;
  if (exchange_ != nullptr && record.effective_step % every_ == 0) {
    Message message;
    if (exchange_->rank() == 0) {
      message = {.effective_step = record.effective_step,
                 .known = record.model_flops ? 1 : 0,
                 .flops = flops_of(record)};
    }
    const bool done =
        exchange_->broadcast(std::as_writable_bytes(std::span{&message, 1}), deadline_);
    if (!done || message.effective_step != record.effective_step) {
      trouble = done
                    ? "rank 0's measurement came for another step: ranks do not take the same steps"
                    : "rank 0's measurement was not exchanged within " +
                          std::to_string(deadline_.count()) + " ms";
      *trouble += "; it is not tried again, and ranks that do not measure show what came last";
      exchange_ = nullptr;
    } else if (exchange_->rank() != 0 && message.known != 0) {
      received_ = message;
    }
  }
  last_step_ = record.effective_step;
  if (received_ && record.flops_source == FlopsSource::none) {
    set_flops(record, received_->flops, FlopsSource::received);
    record.calibration_age = record.effective_step - received_->effective_step;
  }
  return trouble;
}

}  // namespace flopmeter
