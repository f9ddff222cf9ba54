// SPDX-License-Identifier: Apache-2.0
//
// RankMap: the time of every rank over the run, for a heat map of rank and time.
#pragma once

#include <flopmeter/core/step_record.h>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

namespace flopmeter {

/// Takes train records in any order.  About 1 KiB per rank.
class RankMap {
 public:
  void add(const StepRecord& record);

  struct Cell {
    float seconds = 0;  ///< in own work: without waiting for other ranks
    std::uint32_t steps = 0;
  };
  struct Picture {
    std::int64_t first_step = 0;  ///< of the first column
    std::int64_t column_steps = 1;
    std::vector<int> first_ranks;  ///< of each row
    int ranks_per_row = 1;
    int last_rank = 0;  ///< of the last row
    /// Rows by columns: own seconds of a mean step; of several ranks in a row the slowest.
    std::vector<std::vector<std::optional<double>>> rows;
    std::vector<std::vector<int>> slowest;  ///< rank that the value is of
  };
  /// At most `most_rows` rows of the ranks from `first_rank` on, `ranks` of them.
  [[nodiscard]] Picture picture(int first_rank = 0,
                                std::size_t ranks = std::numeric_limits<std::size_t>::max(),
                                std::size_t most_rows = 128) const;
  [[nodiscard]] std::size_t size() const { return ranks_.size(); }

 private:
  static constexpr std::int64_t most_columns = 128;
  void coarsen();

  std::int64_t first_ = 0;  ///< column: a step divided by the length of a column
  std::int64_t last_ = 0;
  unsigned shift_ = 0;
  std::map<int, std::vector<Cell>> ranks_;
};

}  // namespace flopmeter
