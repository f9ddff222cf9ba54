// SPDX-License-Identifier: Apache-2.0
//
// A rank's steps in windows of so many: what ranks are compared by.
#pragma once

#include <flopmeter/core/step_record.h>
#include <flopmeter/runstore/run_directory.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace flopmeter {

/// Work of one rank in a window of successive steps.
struct RankWindow {
  std::int64_t index = 0;  ///< first step of the window, over its length
  double steps = 0;        ///< a double: no claim of a damaged record overflows it
  double seconds = 0;
  std::optional<double> flops{};         ///< of the model; empty if those of a step are unknown
  std::optional<double> waited{};        ///< seconds in collectives that nothing hid
  std::optional<double> communicated{};  ///< seconds in collectives altogether
};

struct RankWindows {
  int rank = 0;
  int role = 0;                     ///< only ranks of one role are compared: role_of()
  std::vector<RankWindow> windows;  ///< by index
};

/// Sums a rank's train steps up, in any order; keeps the newest windows.
class WindowSums {
 public:
  WindowSums(const RunMetadata& run, int rank, int window_steps);

  void add(const StepRecord& record);
  [[nodiscard]] RankWindows windows() const;

 private:
  int rank_;
  int role_;
  int window_steps_;
  std::map<std::int64_t, RankWindow> windows_;
};

}  // namespace flopmeter
