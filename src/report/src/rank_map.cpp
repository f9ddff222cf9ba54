// SPDX-License-Identifier: Apache-2.0
#include "rank_map.h"

#include <flopmeter/core/phase.h>

#include <algorithm>

namespace flopmeter {

void RankMap::add(const StepRecord& record) {
  if (record.tag != StepTag::train) return;
  if (ranks_.empty()) first_ = last_ = record.step >> shift_;
  const auto extends = [&](std::int64_t column) {
    return std::max(last_, column) - std::min(first_, column) >= most_columns;
  };
  while (extends(record.step >> shift_)) coarsen();
  const std::int64_t column = record.step >> shift_;
  if (column < first_) {  // a rank that began earlier
    for (auto& [rank, cells] : ranks_)
      cells.insert(cells.begin(), static_cast<std::size_t>(first_ - column), Cell{});
    first_ = column;
  }
  last_ = std::max(last_, column);
  std::vector<Cell>& cells = ranks_[record.rank];
  const auto at = static_cast<std::size_t>(column - first_);
  if (cells.size() <= at) cells.resize(at + 1);
  const auto& waited = record.phases[static_cast<std::size_t>(Phase::communication)];
  cells[at].seconds +=
      static_cast<float>(record.step_seconds.value - waited.value_or(Seconds{}).value);
  cells[at].steps += record.steps;
}

void RankMap::coarsen() {
  const std::int64_t first = first_ >> 1;
  for (auto& [rank, cells] : ranks_) {
    std::vector<Cell> wider;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const auto at =
          static_cast<std::size_t>(((first_ + static_cast<std::int64_t>(i)) >> 1) - first);
      if (wider.size() <= at) wider.resize(at + 1);
      wider[at].seconds += cells[i].seconds;
      wider[at].steps += cells[i].steps;
    }
    cells = std::move(wider);
  }
  first_ = first;
  last_ >>= 1;
  ++shift_;
}

RankMap::Picture RankMap::picture(int first_rank, std::size_t ranks, std::size_t most_rows) const {
  Picture picture;
  picture.first_step = first_ << shift_;
  picture.column_steps = std::int64_t{1} << shift_;
  const auto begin = ranks_.lower_bound(first_rank);
  const auto count = std::min(ranks, static_cast<std::size_t>(std::distance(begin, ranks_.end())));
  const std::size_t each = std::max<std::size_t>(1, (count + most_rows - 1) / most_rows);
  picture.ranks_per_row = static_cast<int>(each);
  auto rank = begin;
  for (std::size_t i = 0; i < count; ++i, ++rank) {
    if (i % each == 0) {
      picture.first_ranks.push_back(rank->first);
      picture.rows.emplace_back();
      picture.slowest.emplace_back();
    }
    picture.last_rank = rank->first;
    auto& row = picture.rows.back();
    auto& slowest = picture.slowest.back();
    for (std::size_t column = 0; column < rank->second.size(); ++column) {
      if (row.size() <= column) {
        row.resize(column + 1);
        slowest.resize(column + 1);
      }
      const Cell& cell = rank->second[column];
      if (cell.steps == 0) continue;
      const double seconds = static_cast<double>(cell.seconds) / cell.steps;
      if (row[column] && *row[column] >= seconds) continue;
      row[column] = seconds;
      slowest[column] = rank->first;
    }
  }
  return picture;
}

}  // namespace flopmeter
