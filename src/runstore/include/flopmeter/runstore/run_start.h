// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/sink.h>

#include <cstdint>
#include <optional>
#include <string>

namespace flopmeter {

/// State left by the previous start of the same run.
struct EarlierRun {
  double first_start_unix = 0;
  double productive_seconds = 0;
  std::int64_t last_step = 0;
};

struct StartedRun {
  std::optional<EarlierRun> earlier;
  std::string problem;  ///< why run.json could not be written; empty: it was
};

/// Prepares `run.directory` for a start of this rank.  Creates the directory, sets the stamp to one
/// that no other start of this rank has, sets the run id to that of the directory if it is empty,
/// writes run.json, and on rank 0 deletes the files of the oldest starts so that `most_starts`
/// remain (0: all remain).  Files that a process still writes are never deleted.
StartedRun start_run(RunContext& run, double unix_seconds, int most_starts);

/// Whether a process still writes the file: writers hold a lock on it.  Takes a shared lock for a
/// moment, so call it on a file that is not empty: its writer, if any, has the lock already.
bool has_writer(const std::string& path);

}  // namespace flopmeter
