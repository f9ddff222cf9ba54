// SPDX-License-Identifier: Apache-2.0
//
// Sends the measurement of rank 0 to the other ranks.  Runs on the writer thread, so that no step
// waits, and ends permanently after the first rank that misses the deadline.
#pragma once

#include <flopmeter/core/exchange.h>
#include <flopmeter/core/flop_estimator.h>
#include <flopmeter/core/step_record.h>

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>

namespace flopmeter {

class Broadcast {
 public:
  /// If `exchange` is null, nothing is sent.  `every` must be the same on all ranks.
  Broadcast(Exchange* exchange, int every, std::chrono::milliseconds deadline)
      : exchange_(exchange), every_(every), deadline_(deadline) {}

  /// Sends the FLOPs of rank 0 every `every` steps; the other ranks use them in each record until
  /// the next ones arrive.  Returns why it ended, once.
  std::optional<std::string> share(StepRecord& record);

  /// Stops waiting, because the run ends.  Any thread may call it.
  void stop() { stop_.request_stop(); }

 private:
  [[nodiscard]] std::string what_failed() const;

  /// Sent between processes of one program.
  struct Message {
    std::int64_t process_step = 0;
    std::int64_t known = 0;
    FlopEstimate flops;
  };

  Exchange* exchange_;
  int every_;
  std::chrono::milliseconds deadline_;
  std::int64_t last_step_ = -1;
  std::optional<Message> received_;
  std::stop_source stop_;
};

}  // namespace flopmeter
