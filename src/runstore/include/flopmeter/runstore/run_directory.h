// SPDX-License-Identifier: Apache-2.0
//
// A run directory as readers see it: its metadata and its record streams.
#pragma once

#include <flopmeter/core/result.h>
#include <flopmeter/core/run_metadata.h>
#include <flopmeter/core/step_record.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace flopmeter {

/// One record stream: the records that one rank wrote in one start.
struct RankFile {
  int rank = 0;
  std::string stamp;  ///< YYYYmmdd_HHMMSS; restarts have several
  std::string path;
};

struct RunDirectory {
  std::string path;
  RunMetadata metadata;
  std::string note;             ///< why run.json could not be read; empty: it could
  std::vector<RankFile> files;  ///< by rank, then stamp

  /// The ranks that have a stream, in order.
  [[nodiscard]] std::vector<int> ranks() const;
  /// The streams of one rank, oldest start first.
  [[nodiscard]] std::vector<RankFile> files_of(int rank) const;
};

/// The newest run below the working directory: logs/perf_monitor/latest, or logs/perf_monitor if
/// there is no such link.
std::string default_run_directory();

/// Reads run.json and lists the streams.  A directory without a readable run.json is a run if it
/// has streams.  A run of another version of flopmeter is an error; so is a directory of runs,
/// whose message lists them.
Result<RunDirectory> open_run(const std::string& path);

/// The metadata and streams of a run that may still grow.  Not thread-safe.
class RunListing {
 public:
  explicit RunListing(std::string directory) : directory_(std::move(directory)) {}

  /// Opens the run, if the directory has changed since it was last opened; returns whether it has.
  Result<bool> refresh();

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] const RunDirectory& run() const { return run_; }

 private:
  std::string directory_;
  std::int64_t listed_ = -1;  ///< when the directory had last changed, nanoseconds
  RunDirectory run_;
};

/// The newest `most` records of a rank over all starts, oldest first.  Of a step that a restart
/// repeated, only the last record counts.  Train steps only, unless `all`.
std::vector<StepRecord> read_window(const RunDirectory& run,
                                    int rank,
                                    std::size_t most = 10'000,
                                    bool all = false);

}  // namespace flopmeter
