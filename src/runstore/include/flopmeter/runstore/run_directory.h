// SPDX-License-Identifier: Apache-2.0
//
// A run directory read back: what run.json says, and which record streams there are.
#pragma once

#include <flopmeter/core/peak_table.h>
#include <flopmeter/core/result.h>
#include <flopmeter/core/step_record.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace flopmeter {

/// What run.json says.  Text that it does not say is empty.
struct RunDescription {
  std::string run_id;
  std::string stamp;  ///< of the start that wrote it
  std::string model;
  std::string convention;
  std::string mode;
  PeakTable peaks;  ///< with the device's name and where the peaks are from
  std::optional<int> world_size;
  std::optional<int> data_parallel;
  std::optional<int> pipeline_parallel;
  std::optional<int> pipeline_stride;  ///< from a rank to the one with the next layers
  std::optional<int> devices_per_rank;
  std::optional<int> processors;  ///< that rank 0 may use
  std::optional<int> log_interval;
  std::string details;  ///< further keys, as a JSON object; empty where there are none

  /// Ranks of one role do the same work: the stage of a pipeline.
  [[nodiscard]] int role(int rank) const;
};

/// One record stream: what one rank wrote from one start on.
struct RankFile {
  int rank = 0;
  std::string stamp;  ///< YYYYmmdd_HHMMSS; restarts have several
  std::string path;
};

struct RunDirectory {
  std::string path;
  RunDescription description;
  std::string note;             ///< why run.json could not be read; empty where it could
  std::vector<RankFile> files;  ///< by rank, then stamp

  /// All ranks that have a stream, in order.
  [[nodiscard]] std::vector<int> ranks() const;
  /// The streams of one rank, oldest start first.
  [[nodiscard]] std::vector<RankFile> files_of(int rank) const;
};

/// Reads run.json and lists the streams; opens none of them.  A directory without a readable
/// run.json is still a run where it has streams.
Result<RunDirectory> open_run(const std::string& path);

/// The newest `most` records of a rank, oldest first, all starts together; a step that a restart
/// did again counts as it was done last.  Unless `all`, train steps only: those that averages take.
std::vector<StepRecord> read_window(const RunDirectory& run,
                                    int rank,
                                    std::size_t most = 10'000,
                                    bool all = false);

}  // namespace flopmeter
