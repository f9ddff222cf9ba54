// SPDX-License-Identifier: Apache-2.0
//
// The run directory: run.json, the stamp of this start, what an earlier start left, and which old
// logs may go.
#pragma once

#include "run_statistics.h"

#include <flopmeter/monitor/monitor.h>

#include <optional>
#include <string>
#include <string_view>

namespace flopmeter {

/// YYYYmmdd_HHMMSS in local time.
std::string stamp_of(double unix_seconds);

/// A stamp that no other start of this rank has: that of `unix_seconds`, or of a second soon after.
/// Takes it by creating the record file, which must not exist yet.
std::string claim_stamp(const std::string& directory, int rank, double unix_seconds);

/// What run.json of `directory` says about the run; empty where there is none that can be read.
std::optional<std::string> stored_run_id(const std::string& directory);

/// A new identifier: 16 hexadecimal digits.
std::string new_run_id();

/// Writes run.json; with `only_new` an existing one is left alone.
Result<void> write_run_json(const Options& options,
                            const Connections& connections,
                            const RunInfo& run,
                            bool only_new);

/// The last whole record that an earlier start of this rank left, unless that start is still alive.
std::optional<EarlierRun> earlier_run(const std::string& directory, int rank);

/// Appends a whole line to a file of ours, or nothing; whether it could.
bool append_line(const std::string& path, std::string_view line);

/// Deletes whole stamps, oldest first, until at most `keep` are left beside those still being
/// written.
void retain_stamps(const std::string& directory, int keep);

}  // namespace flopmeter
