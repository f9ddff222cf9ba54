// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/analysis/rank_comparison.h>
#include <flopmeter/analysis/run_evidence.h>
#include <flopmeter/catalog/model_family.h>
#include <flopmeter/runstore/profile_stream.h>
#include <flopmeter/runstore/record_stream.h>

#include <algorithm>
#include <filesystem>
#include <limits>

namespace flopmeter {
namespace {

constexpr std::size_t kept_steps = 1000;  // as records, for rules that look at single steps
constexpr std::size_t steps_of_ranks = 200;

/// Compares all ranks over their newest steps.
std::vector<RankFigures> read_ranks(const RunDirectory& run, std::span<const int> ranks) {
  RankComparison comparison{run.metadata};
  for (const int rank : ranks) {
    for (const StepRecord& record : read_window(run, rank, steps_of_ranks)) comparison.add(record);
  }
  return comparison.figures();
}

using Progress = std::function<void(double share)>;

/// Totals of one rank over all starts; a step that a restart repeated counts as it was done last.
StepTotals read_totals(const RunDirectory& run, int rank, const Progress& progress) {
  StepTotals totals;
  std::int64_t repeated_from = std::numeric_limits<std::int64_t>::max();
  const std::vector<RankFile> files = run.files_of(rank);
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    RecordReader reader{file->path};
    std::error_code code;
    const auto size = static_cast<double>(std::filesystem::file_size(file->path, code));
    std::int64_t first = repeated_from;
    for (std::int64_t count = 0; const auto record = reader.next(); ++count) {
      if (progress && count % 4096 == 4095)
        progress((static_cast<double>(file - files.rbegin()) +
                  static_cast<double>(reader.offset()) / size) /
                 static_cast<double>(files.size()));
      first = std::min(first, record->step);
      if (record->step < repeated_from) totals.add(*record);
    }
    repeated_from = first;
  }
  return totals;
}

/// Totals of the chosen ranks over the chosen steps.
StepTotals totals_of(const RunDirectory& run,
                     std::span<const int> ranks,
                     std::optional<std::size_t> steps,
                     const Progress& progress) {
  std::vector<StepTotals> all;
  for (const int rank : ranks) {
    const auto of_all = [&](double share) {
      if (progress)
        progress((static_cast<double>(all.size()) + share) / static_cast<double>(ranks.size()));
    };
    of_all(0);
    if (!steps) {
      all.push_back(read_totals(run, rank, of_all));
      continue;
    }
    for (all.emplace_back(); const StepRecord& record : read_window(run, rank, *steps, true))
      all.back().add(record);
  }
  return StepTotals::of_ranks(all);
}

/// Profiles of an earlier part of a long run do not describe the window, unless it has none.
void keep_recent(std::vector<OpProfile>& profiles, double begin_unix) {
  const auto recent = std::find_if(profiles.begin(), profiles.end(), [=](const OpProfile& profile) {
    return profile.time_unix >= begin_unix;
  });
  const auto oldest = recent != profiles.end() || profiles.empty() ? recent : profiles.end() - 1;
  profiles.erase(profiles.begin(), oldest);
}

}  // namespace

Evidence read_evidence(const RunDirectory& run, const EvidenceOptions& options) {
  Evidence evidence;
  const std::vector<int> ranks = run.ranks();
  if (ranks.empty()) return evidence;
  const int rank = options.rank.value_or(ranks.front());
  evidence.rank = options.rank;
  evidence.steps = read_window(run, rank, options.steps.value_or(kept_steps), true);
  evidence.totals =
      options.totals ? options.totals
                     : totals_of(run,
                                 options.rank ? std::span<const int>{&rank, 1} : std::span{ranks},
                                 options.steps,
                                 options.progress);
  evidence.peaks = run.metadata.peaks;
  evidence.pipeline_stages = run.metadata.pipeline_parallel;
  evidence.processors = run.metadata.processors;
  evidence.profiles = read_profiles(run, rank);
  if (const auto model = model_of(run.metadata.model_source))
    evidence.similar =
        published_query(*model, run.metadata.model_source.trainable.starts_with("lora"));
  if (!evidence.steps.empty()) keep_recent(evidence.profiles, evidence.steps.front().time_unix);
  if (ranks.size() > 1) evidence.ranks = options.ranks ? *options.ranks : read_ranks(run, ranks);
  return evidence;
}

}  // namespace flopmeter
