// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/peak_table.h>
#include <flopmeter/core/result.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace flopmeter::demo {

/// One training run of the demo.
struct TrainingRun {
  std::string name;
  std::int64_t batch = 16;
  std::chrono::milliseconds loader_delay{0};
  bool bf16 = false;
  double seconds = 25;
  std::string directory;
  PeakTable peaks;
};

struct RunResult {
  double mfu = 0;
  double tokens_per_second = 0;
  double data_share = 0;  ///< of the time, waiting for data
  std::int64_t steps = 0;
  double last_loss = 0;
};

/// Trains, shows a live line, and returns the result.
Result<RunResult> train(const TrainingRun& run);

}  // namespace flopmeter::demo
