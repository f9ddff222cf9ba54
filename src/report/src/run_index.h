// SPDX-License-Identifier: Apache-2.0
//
// RunIndex: a run directory, read once and then followed while it grows, in bounded memory.
#pragma once

#include "finding_marks.h"
#include "rank_map.h"

#include <flopmeter/analysis/rank_comparison.h>
#include <flopmeter/core/result.h>
#include <flopmeter/report/run_overview.h>
#include <flopmeter/runstore/run_directory.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace flopmeter {

/// Not thread-safe.
class RunIndex {
 public:
  /// Curves have at most `most_buckets` points.
  explicit RunIndex(std::string directory, std::size_t most_buckets = 2000);

  /// Reads about `most` bytes of what was written since the last call; false if nothing is left.
  Result<bool> advance(std::int64_t most = std::numeric_limits<std::int64_t>::max());

  /// Increases with every change.
  [[nodiscard]] std::int64_t version() const { return version_; }
  [[nodiscard]] const RunDirectory& run() const { return listing_.run(); }
  [[nodiscard]] const RunOverview& overview() const { return overview_; }
  [[nodiscard]] const RankMap& rank_map() const { return rank_map_; }
  [[nodiscard]] std::int64_t damaged_lines() const { return damaged_; }
  /// Of the lowest rank.
  [[nodiscard]] std::vector<FindingMark> marks() const;
  /// All that the analysis needs.
  [[nodiscard]] Evidence evidence() const;
  /// Each start of the run, with the first step of its lowest rank.
  struct Start {
    std::string stamp;
    std::optional<std::int64_t> step;
  };
  [[nodiscard]] std::vector<Start> starts() const;
  /// End of the newest record of any rank; 0 without one.
  [[nodiscard]] double last_unix() const;
  /// Of a mean train step; 0 without one.
  [[nodiscard]] double step_seconds() const;
  /// Calls `use` with the train steps from `first` to `last` of all ranks; false without a call if
  /// that takes reading more than `most` bytes.
  bool read_steps(std::int64_t first,
                  std::int64_t last,
                  std::int64_t most,
                  const std::function<void(const StepRecord&)>& use) const;
  /// Frees what only newer records need.
  void settle();
  /// Whether a process still writes the newest stream of the lowest rank.
  [[nodiscard]] bool written() const;

 private:
  struct Stream {
    RankFile file;
    std::int64_t offset = 0;  ///< bytes that are done
    std::uint64_t inode = 0;  ///< a stream at its size limit is replaced
    bool given_up = false;    ///< the rest has no lines
    std::optional<std::int64_t> first_step{};
    std::int64_t last_step = std::numeric_limits<std::int64_t>::min();
    /// From this step on, a later start did the work again.
    std::int64_t repeated_from = std::numeric_limits<std::int64_t>::max();
    /// Where to begin to read for a step: highest step before an offset, and the offset.
    std::vector<std::pair<std::int64_t, std::int64_t>> places{};
  };

  Result<void> list();
  void restart();
  /// False if the run has to be read again from its beginning.
  bool read(Stream& stream, std::int64_t& most);
  bool begins_again(const Stream& stream) const;

  RunListing listing_;
  std::size_t most_buckets_;
  std::int64_t version_ = 0;
  std::vector<Stream> streams_;  ///< by rank, then start
  std::size_t next_ = 0;         ///< stream to read next
  RunOverview overview_;
  RankMap rank_map_;
  RankComparison comparison_;
  std::optional<FindingMarks> marks_;
  bool profiled_ = false;  ///< marks_ has the profiles
  std::int64_t damaged_ = 0;
};

}  // namespace flopmeter
