// SPDX-License-Identifier: Apache-2.0
#include "broadcast.h"

#include "flop_resolver.h"

#include <span>

namespace flopmeter {

std::string Broadcast::what_failed() const {
  const std::string deadline = std::to_string(deadline_.count()) + " ms";
  return (exchange_->rank() == 0
              ? "a rank is late or gone: it did not receive the measurement of rank 0 "
              : "rank 0 is late or gone: its measurement did not arrive ") +
         (stop_.stop_requested()
              ? "before this rank's run ended, and the deadline of " + deadline + " was cut short"
              : "within " + deadline);
}

std::optional<std::string> Broadcast::share(StepRecord& record) {
  if (record.process_step <= last_step_) return std::nullopt;  // not a new step
  std::optional<std::string> trouble;
  if (exchange_ != nullptr && record.process_step % every_ == 0) {
    Message message;
    if (exchange_->rank() == 0) {
      message = {.process_step = record.process_step,
                 .known = record.model_flops ? 1 : 0,
                 .flops = flops_of(record)};
    }
    const bool done = exchange_->broadcast(
        std::as_writable_bytes(std::span{&message, 1}), deadline_, stop_.get_token());
    if (!done || message.process_step != record.process_step) {
      trouble =
          done ? "the measurement of rank 0 is for another step: ranks do not run the same steps"
               : what_failed();
      *trouble += "; it is not retried, and the other ranks keep the last measurement";
      exchange_ = nullptr;
    } else if (exchange_->rank() != 0 && message.known != 0) {
      received_ = message;
    }
  }
  last_step_ = record.process_step;
  if (received_ && record.flops_source == FlopsProvenance::none) {
    set_flops(record, received_->flops, FlopsProvenance::broadcast);
    record.calibration_age = record.process_step - received_->process_step;
  }
  return trouble;
}

}  // namespace flopmeter
