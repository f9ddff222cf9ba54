// SPDX-License-Identifier: Apache-2.0
#include "report_ranks.h"

#include "report_curves.h"
#include "report_data.h"

#include <algorithm>
#include <limits>
#include <set>

namespace flopmeter {
namespace {

constexpr std::size_t most_rank_rows = 64;
constexpr std::size_t most_rank_bars = 600;

}  // namespace

void write_ranks(JsonWriter& json,
                 const RunOverview& overview,
                 const std::vector<RankFigures>& judged) {
  const std::set<int> silent = overview.silent_ranks();
  std::set<int> slow = silent;  // marked, and first in the list
  for (const RankFigures& rank : judged) {
    if (rank.verdict != Verdict::normal) slow.insert(rank.rank);
  }
  using Row = std::pair<int, const RankTotals*>;
  std::vector<Row> rows;
  std::vector<double> own;
  for (const auto& [rank, totals] : overview.ranks) {
    rows.emplace_back(rank, &totals);
    own.push_back(own_seconds(totals.steps));
  }
  // The lower one of two: against itself, the slower of two ranks would not be slow.
  const auto middle =
      own.begin() + static_cast<std::ptrdiff_t>(own.empty() ? 0 : (own.size() - 1) / 2);
  if (!own.empty()) std::nth_element(own.begin(), middle, own.end());
  const std::optional<double> median = own.empty() ? std::nullopt : std::optional{*middle};
  json.key("ranks").begin_object().field("count", rows.size()).field("median_seconds", median);
  json.key("strip").begin_array();
  const std::size_t each = (rows.size() + most_rank_bars - 1) / most_rank_bars;
  const auto slower = [&slow](const Row& a, const Row& b) {
    return std::pair{slow.contains(a.first), own_seconds(a.second->steps)} <
           std::pair{slow.contains(b.first), own_seconds(b.second->steps)};
  };
  for (std::size_t i = 0; i < rows.size(); i += each) {
    const auto end = rows.begin() + static_cast<std::ptrdiff_t>(std::min(i + each, rows.size()));
    const Row& worst =
        *std::max_element(rows.begin() + static_cast<std::ptrdiff_t>(i), end, slower);
    json.begin_object()
        .field("rank", worst.first)
        .field("step_seconds", own_seconds(worst.second->steps))
        .field("slow", slow.contains(worst.first))
        .end_object();
  }
  json.end_array();
  if (rows.size() > most_rank_rows) {
    std::stable_sort(rows.begin(), rows.end(), [&](auto& a, auto& b) { return slower(b, a); });
    rows.resize(most_rank_rows);
  }
  json.key("rows").begin_array();
  for (const auto& [rank, totals] : rows) {
    json.begin_object()
        .field("rank", rank)
        .field("steps", totals->steps.steps)
        .field("last_step", totals->steps.last_step)
        .field("step_seconds", own_seconds(totals->steps))
        .field("slow", slow.contains(rank))
        .field("silent", silent.contains(rank))
        .field("mfu", totals->steps.mfu())
        .field("data_share", totals->steps.phase_share(Phase::data))
        .field("communication_share", totals->steps.phase_share(Phase::communication))
        .field("memory_peak_bytes", totals->memory_peak_bytes)
        .field("dropped_records", totals->dropped_records)
        .end_object();
  }
  json.end_array().end_object();
}

void write_rank_map(JsonWriter& json, const RankMap::Picture& picture) {
  json.begin_object()
      .field("first_step", picture.first_step)
      .field("column_steps", picture.column_steps)
      .field("ranks_per_row", picture.ranks_per_row)
      .field("last_rank", picture.last_rank);
  const auto write_rows = [&](std::string_view name, const auto& rows, auto write) {
    json.key(name).begin_array();
    for (const auto& row : rows) {
      json.begin_array();
      for (const auto& value : row) write(value);
      json.end_array();
    }
    json.end_array();
  };
  json.key("first_ranks").begin_array();
  for (const int rank : picture.first_ranks) json.value(rank);
  json.end_array();
  write_rows("rows", picture.rows, [&](const std::optional<double>& seconds) {
    seconds ? write_short(json, *seconds) : void(json.null());
  });
  write_rows("slowest", picture.slowest, [&](int rank) { json.value(rank); });
  json.end_object();
}

std::string rank_map_json(const RunIndex& index,
                          std::optional<long long> first_rank,
                          std::optional<long long> ranks) {
  const auto bounded = [](long long value) {
    return static_cast<int>(std::clamp<long long>(value, 0, std::numeric_limits<int>::max()));
  };
  const int first = bounded(first_rank.value_or(0));
  std::string text;
  JsonWriter json{text};
  write_rank_map(json,
                 ranks ? index.rank_map().picture(first, static_cast<std::size_t>(bounded(*ranks)))
                       : index.rank_map().picture(first));
  return text;
}

}  // namespace flopmeter
