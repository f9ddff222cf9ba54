// SPDX-License-Identifier: Apache-2.0
//
// The operator profiles of a rank (op_profile_<stamp>.rank<r>.jsonl): one JSON object per line and
// profiled step, written and read here.
#pragma once

#include <flopmeter/core/op_profile.h>
#include <flopmeter/runstore/run_directory.h>
#include <flopmeter/runstore/run_layout.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flopmeter {

/// One line of the stream.  All rows but the `most` longest are summed by kind and phase.
std::string to_json(const OpProfile& profile, std::size_t most = 200);

/// The inverse of to_json(); empty if `line` is not a profile of this schema.
std::optional<OpProfile> parse_op_profile(std::string_view line);

/// Appends profiles to a file.  Not thread-safe.
class ProfileWriter {
 public:
  ProfileWriter(std::string path, std::int64_t limit_bytes)
      : path_(std::move(path)), limit_bytes_(limit_bytes) {}

  /// Writes a complete line or nothing; false if it failed.  Past the limit it writes nothing.
  bool add(const OpProfile& profile);

 private:
  std::string path_;
  std::int64_t limit_bytes_;
  std::int64_t bytes_ = 0;
};

/// The newest profiles of a rank over all starts, oldest first.
std::vector<OpProfile> read_profiles(const RunDirectory& run, int rank);

}  // namespace flopmeter
