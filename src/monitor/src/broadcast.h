// SPDX-License-Identifier: Apache-2.0
//
// Rank 0 measures and tells the others: on the writing thread, so that no step waits, and given up
// for good when a rank does not answer in time.
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
  /// Null: nothing is exchanged.  All ranks must be given the same `every`.
  Broadcast(Exchange* exchange, int every, std::chrono::milliseconds deadline)
      : exchange_(exchange), every_(every), deadline_(deadline) {}

  /// Every so many steps rank 0's FLOPs go out; on the other ranks they stand in each record until
  /// the next ones come.  Returns what is to be said when it is given up, once.
  std::optional<std::string> share(StepRecord& record);

  /// The run ends: what is under way is waited for no longer.  From any thread.
  void stop() { stop_.request_stop(); }

 private:
  [[nodiscard]] std::string what_failed() const;

  /// What goes over the wire between processes of one program.
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
