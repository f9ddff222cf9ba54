// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/analysis/merge_json.h>

namespace flopmeter {
namespace {

void write_spread(JsonWriter& json, std::string_view name, const Spread& spread) {
  json.key(name);
  if (spread.ranks == 0) {
    json.null();
    return;
  }
  json.begin_object()
      .field("mean", spread.mean())
      .field("min", spread.least)
      .field("min_rank", spread.least_rank)
      .field("max", spread.most)
      .field("max_rank", spread.most_rank)
      .end_object();
}

void write_totals(JsonWriter& json, const MergedRun& merged) {
  const WorldTotals& totals = merged.totals;
  json.key("totals")
      .begin_object()
      .field("complete_steps", totals.complete_steps)
      .field("incomplete_steps", totals.incomplete_steps)
      .field("model_flops", totals.model_flops)
      .field("hardware_flops", totals.hardware_flops)
      .field("reported_model_flops", totals.reported_model_flops)
      .field("reported_hardware_flops", totals.reported_hardware_flops)
      .field("tokens", totals.tokens)
      .field("samples", totals.samples)
      .field("seconds", merged.world.seconds)
      .field("mfu", merged.world.mfu())
      .field("hfu", merged.world.hfu())
      .field("tokens_per_second", merged.world.tokens_per_second())
      .field("samples_per_second", merged.world.samples_per_second())
      .end_object();
}

void write_rank(JsonWriter& json, const RankSummary& rank) {
  json.begin_object()
      .field("rank", rank.rank)
      .field("verdict", to_string(rank.score.verdict))
      .field("starts", rank.starts)
      .field("steps", rank.totals.steps)
      .field("repeated_steps", rank.repeated_steps)
      .field("damaged_lines", rank.damaged_lines)
      .field("first_step", rank.first_step)
      .field("last_step", rank.last_step)
      .field("last_time_unix", rank.last_time > 0 ? std::optional{rank.last_time} : std::nullopt)
      .field("seconds", rank.totals.seconds)
      .field("mfu", rank.totals.mfu())
      .field("model_flops",
             rank.totals.model_flops.seconds > 0
                 ? std::optional{Flops{rank.totals.model_flops.amount}}
                 : std::nullopt)
      .field("waited_seconds", rank.totals.phase(Phase::communication))
      .field("overlapped_seconds", rank.totals.overlapped_communication)
      .field("relative_speed", rank.score.relative)
      .field("historical_speed", rank.score.historical)
      .field("lead_seconds", rank.score.lead)
      .field("slow_windows", rank.score.slow_windows)
      .field("late_windows", rank.score.late_windows)
      .end_object();
}

}  // namespace

void write_json(JsonWriter& json, const MergedRun& merged) {
  json.begin_object()
      .field("schema", "flopmeter.ranks/1")
      .field("world_size", merged.world_size)
      .field("window_steps", merged.window_steps);
  write_totals(json, merged);
  const auto list = [&](std::string_view name, const auto& values) {
    json.key(name).begin_array();
    for (const auto& value : values) json.value(value);
    json.end_array();
  };
  list("missing", merged.missing);
  list("behind", merged.behind);
  list("missing_signals", merged.missing_signals);
  list("notes", merged.notes);
  json.key("starts").begin_array();
  for (const Start& start : merged.starts) {
    json.begin_object()
        .field("stamp", start.stamp)
        .field("world_size", start.world_size)
        .field("ranks", start.ranks)
        .end_object();
  }
  json.end_array().key("ranks").begin_array();
  for (const RankSummary& rank : merged.ranks) write_rank(json, rank);
  json.end_array().key("steps").begin_array();
  for (const WorldStep& step : merged.steps) {
    json.begin_object()
        .field("step", step.step)
        .field("ranks", step.ranks)
        .field("world_size", step.world_size)
        .field("model_flops", step.model_flops)
        .field("hardware_flops", step.hardware_flops)
        .field("tokens", step.tokens)
        .field("samples", step.samples);
    write_spread(json, "seconds", step.seconds);
    write_spread(json, "mfu", step.mfu);
    json.end_object();
  }
  json.end_array().end_object();
}

}  // namespace flopmeter
