// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/analysis/run_evidence.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>

namespace flopmeter {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t warming_up = 3;  // first steps of a process
constexpr std::size_t steps_of_ranks = 200;
constexpr int default_window = 10;

Phase phase_named(std::string_view name) {
  for (std::size_t i = 0; i < phase_count; ++i) {
    if (to_string(static_cast<Phase>(i)) == name) return static_cast<Phase>(i);
  }
  return Phase::other;
}

OpProfileRow row_of(const Json& json) {
  OpProfileRow row;
  row.name = json.at("name").get<std::string>();
  row.kind = parse_op_kind(json.at("kind").get<std::string>()).value_or(OpKind::unknown);
  row.phase = phase_named(json.at("phase").get<std::string>());
  row.backward = json.at("backward").get<bool>();
  row.elements = json.at("elements").get<std::int64_t>();
  row.calls = json.at("calls").get<std::uint64_t>();
  row.self = {json.at("self_seconds").get<double>()};
  row.recompute = json.value("recompute", false);
  row.across_devices = json.value("across_devices", false);
  row.shape = json.value("shape", std::string{});
  row.flops = json.value("flops", std::uint64_t{0});
  row.bytes = json.value("bytes", std::uint64_t{0});
  return row;
}

IdleSpan gap_of(const Json& json) {
  return {.phase = phase_named(json.at("phase").get<std::string>()),
          .recompute = json.value("recompute", false),
          .pause = json.value("pause", false),
          .count = json.at("count").get<std::uint64_t>(),
          .time = {json.at("seconds").get<double>()}};
}

/// All ranks side by side over their newest steps.
std::vector<RankFigures> read_ranks(const RunDirectory& run, std::span<const int> ranks) {
  const int window_steps = run.description.log_interval.value_or(default_window);
  std::vector<RankWindows> windows;
  std::map<std::int64_t, std::vector<double>> steps;
  for (const int rank : ranks) {
    WindowSums sums{run.description, rank, window_steps};
    for (const StepRecord& record : read_window(run, rank, steps_of_ranks)) {
      if (record.process_step < warming_up) continue;
      sums.add(record);
      const auto& waited = record.phases[static_cast<std::size_t>(Phase::communication)];
      steps[record.step].push_back((record.step_seconds - waited.value_or(Seconds{})).value);
    }
    windows.push_back(sums.windows());
  }
  std::vector<RankFigures> figures = compare_ranks(windows);
  for (const auto& [number, work] : steps) {
    if (work.size() != figures.size()) continue;  // not all have it
    for (std::size_t i = 0; i < work.size(); ++i) figures[i].work_seconds.push_back(work[i]);
  }
  return figures;
}

}  // namespace

std::optional<OpProfile> parse_op_profile(std::string_view line) try {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || json.value("v", 0) != 1) return std::nullopt;
  OpProfile profile;
  profile.step = json.at("step").get<std::int64_t>();
  profile.time_unix = json.at("time_unix").get<double>();
  profile.wall = {json.at("wall_seconds").get<double>()};
  profile.busy = {json.at("busy_seconds").get<double>()};
  profile.calls = json.at("calls").get<std::uint64_t>();
  profile.on_device = json.at("on_device").get<bool>();
  for (const Json& row : json.at("rows")) profile.rows.push_back(row_of(row));
  for (const Json& gap : json.value("gaps", Json::array())) profile.gaps.push_back(gap_of(gap));
  return profile;
} catch (const Json::exception&) {
  return std::nullopt;
}

std::vector<OpProfile> read_profiles(const RunDirectory& run, int rank) {
  std::vector<OpProfile> profiles;
  for (const RankFile& file : run.files_of(rank)) {
    std::ifstream lines{run.path + "/op_profile_" + file.stamp + ".rank" + std::to_string(rank) +
                        ".jsonl"};
    for (std::string line; std::getline(lines, line);) {
      if (auto profile = parse_op_profile(line)) profiles.push_back(*std::move(profile));
    }
  }
  return profiles;
}

Evidence read_evidence(const RunDirectory& run, int rank, std::size_t most) {
  Evidence evidence;
  evidence.steps = read_window(run, rank, most, true);
  std::erase_if(evidence.steps,
                [](const StepRecord& record) { return record.process_step < warming_up; });
  evidence.peaks = run.description.peaks;
  evidence.pipeline_stages = run.description.pipeline_parallel;
  evidence.processors = run.description.processors;
  evidence.profiles = read_profiles(run, rank);
  // Profiles of an earlier part of a long run tell nothing about this window, unless there is none
  // in it.
  if (!evidence.steps.empty()) {
    const double begin = evidence.steps.front().time_unix;
    const auto recent =
        std::find_if(evidence.profiles.begin(), evidence.profiles.end(), [begin](const auto& profile) {
          return profile.time_unix >= begin;
        });
    if (recent != evidence.profiles.end()) {
      evidence.profiles.erase(evidence.profiles.begin(), recent);
    } else if (evidence.profiles.size() > 1) {
      evidence.profiles.erase(evidence.profiles.begin(), evidence.profiles.end() - 1);
    }
  }
  if (const std::vector<int> ranks = run.ranks(); ranks.size() > 1)
    evidence.ranks = read_ranks(run, ranks);
  return evidence;
}

}  // namespace flopmeter
