// SPDX-License-Identifier: Apache-2.0
#include "world_sums.h"

#include <flopmeter/analysis/merge.h>
#include <flopmeter/runstore/input_limits.h>
#include <flopmeter/runstore/record_stream.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace flopmeter {
namespace {

constexpr int default_window = 10;

/// The run that a stream of one rank belongs to.
struct Stream {
  std::string stamp;
  int rank = 0;
  int world_size = 1;
};

/// Reads one rank's streams, newest first, so that a step done again counts as it was done last.
class RankReading {
 public:
  RankReading(const RunMetadata& run, int rank, int window_steps)
      : windows_(run, rank, window_steps) {
    summary_.rank = rank;
  }

  void read(const std::vector<RankFile>& files, WorldSums& world, std::vector<Stream>& streams) {
    std::int64_t done_later = std::numeric_limits<std::int64_t>::max();
    for (auto file = files.rbegin(); file != files.rend(); ++file) {
      RecordReader reader{file->path};
      std::int64_t first = done_later;
      bool any = false;
      while (const auto record = reader.next()) {
        if (!any) streams.push_back({file->stamp, summary_.rank, record->world_size});
        any = true;
        first = std::min(first, record->step);
        summary_.last_time = std::max(summary_.last_time, record->time_unix);
        if (record->tag != StepTag::train) continue;
        if (record->step >= done_later) {
          ++summary_.repeated_steps;
        } else {
          add(*record);
          world.add(*record, summary_.rank);
        }
      }
      summary_.starts += any ? 1 : 0;
      summary_.damaged_lines += reader.damaged_lines();
      done_later = first;
    }
  }

  [[nodiscard]] RankSummary& summary() { return summary_; }
  [[nodiscard]] RankWindows windows() const { return windows_.windows(); }

 private:
  void add(const StepRecord& record) {
    summary_.totals.add(record);
    summary_.first_step = std::min(summary_.first_step.value_or(record.step), record.step);
    summary_.last_step = std::max(summary_.last_step.value_or(record.step), record.step);
    windows_.add(record);
  }

  RankSummary summary_;
  WindowSums windows_;
};

std::vector<Start> starts_of(std::vector<Stream> streams) {
  std::sort(streams.begin(), streams.end(), [](const Stream& a, const Stream& b) {
    return std::tie(a.stamp, a.rank) < std::tie(b.stamp, b.rank);
  });
  std::vector<Start> starts;
  std::set<int> ranks;
  for (const Stream& stream : streams) {
    // A rank that starts again, or a world of another size: the ones before were an earlier start.
    if (starts.empty() || starts.back().world_size != stream.world_size ||
        !ranks.insert(stream.rank).second) {
      starts.push_back({stream.stamp, stream.world_size, 0});
      ranks = {stream.rank};
    }
    ++starts.back().ranks;
  }
  return starts;
}

/// Marks ranks that never wrote, stopped or fell behind; the others are judged by their windows.
void judge(MergedRun& merged) {
  std::vector<std::int64_t> last;
  for (const RankSummary& rank : merged.ranks) {
    if (rank.last_step && rank.rank < merged.world_size) last.push_back(*rank.last_step);
  }
  if (last.empty()) return;
  const auto middle = last.begin() + static_cast<std::ptrdiff_t>(last.size() / 2);
  std::nth_element(last.begin(), middle, last.end());
  const std::int64_t expected = *middle - merged.window_steps;
  for (RankSummary& rank : merged.ranks) {
    if (rank.rank >= merged.world_size) continue;  // of an earlier, larger world
    if (!rank.last_step) {
      rank.score.verdict = Verdict::missing;
      merged.missing.push_back(rank.rank);
    } else if (*rank.last_step < expected) {
      rank.score.verdict = Verdict::behind;
      merged.behind.push_back(rank.rank);
    }
  }
}

}  // namespace

void Spread::add(double value, int rank) {
  if (ranks == 0 || value < least) {
    least = value;
    least_rank = rank;
  }
  if (ranks == 0 || value > most) {
    most = value;
    most_rank = rank;
  }
  ++ranks;
  sum += value;
}

MergedRun merge_ranks(const RunDirectory& run, const MergeOptions& options) {
  MergedRun merged;
  merged.window_steps = options.window_steps > 0
                            ? options.window_steps
                            : run.metadata.log_interval.value_or(default_window);
  WorldSums world;
  std::vector<Stream> streams;
  std::vector<RankWindows> windows;
  std::map<int, RankSummary> ranks;
  for (auto file = run.files.begin(); file != run.files.end();) {
    const auto end = std::find_if(
        file, run.files.end(), [rank = file->rank](const RankFile& f) { return f.rank != rank; });
    RankReading reading{run.metadata, file->rank, merged.window_steps};
    reading.read({file, end}, world, streams);
    windows.push_back(reading.windows());
    ranks.emplace(file->rank, reading.summary());
    file = end;
  }
  merged.starts = starts_of(std::move(streams));
  merged.world_size =
      InputLimits::world_size(!merged.starts.empty() ? merged.starts.back().world_size
                                                     : run.metadata.world_size.value_or(1),
                              ranks.size());
  for (int rank = 0; rank < merged.world_size; ++rank) ranks[rank].rank = rank;
  std::erase_if(windows, [&](const RankWindows& each) { return each.rank >= merged.world_size; });
  StragglerReport report = find_stragglers(windows, options.straggler);
  for (RankScore& score : report.ranks) ranks[score.rank].score = score;
  merged.missing_signals = std::move(report.missing_signals);
  for (auto& [number, rank] : ranks) {
    rank.score.rank = number;
    merged.ranks.push_back(rank);
  }
  judge(merged);
  merged.steps = world.steps();
  merged.totals = world.totals();
  std::vector<StepTotals> written;
  for (const RankSummary& rank : merged.ranks) {
    if (rank.totals.steps > 0) written.push_back(rank.totals);
  }
  merged.world = StepTotals::of_ranks(written);
  merged.notes = world.notes();
  return merged;
}

}  // namespace flopmeter
