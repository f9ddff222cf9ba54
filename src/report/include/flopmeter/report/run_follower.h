// SPDX-License-Identifier: Apache-2.0
//
// RunFollower: follows a growing run directory. It reads only what was added, as seen by the file
// sizes, and opens one file at a time, so that it can follow ten thousand ranks.
#pragma once

#include <flopmeter/core/result.h>
#include <flopmeter/core/step_record.h>
#include <flopmeter/report/live_totals.h>
#include <flopmeter/runstore/run_directory.h>

#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace flopmeter {

/// Not thread-safe.
class RunFollower {
 public:
  explicit RunFollower(std::string directory) : listing_(std::move(directory)) {}

  /// Takes in what was written since the last call; at the first, the end of each stream.  Returns
  /// whether anything was new.
  Result<bool> refresh();

  [[nodiscard]] const RunDirectory& run() const { return listing_.run(); }
  [[nodiscard]] const LiveTotals& totals() const { return totals_; }
  /// The newest records, of all tags, of the lowest rank.
  [[nodiscard]] const std::deque<StepRecord>& window() const { return window_; }

 private:
  struct Stream {
    std::string path;
    std::int64_t offset = 0;  ///< bytes that are done with
    std::int64_t size = -1;   ///< at the last look
  };

  Result<bool> list();
  bool read(Stream& stream, std::int64_t size, std::int64_t most);
  void take(std::string_view line);

  RunListing listing_;
  std::map<int, Stream> streams_;  ///< the newest of each rank
  LiveTotals totals_;
  std::deque<StepRecord> window_;
};

}  // namespace flopmeter
