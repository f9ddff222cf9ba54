// SPDX-License-Identifier: Apache-2.0
#include "report_curves.h"
#include "report_data.h"
#include "report_diagnosis.h"
#include "report_ranks.h"

#include <flopmeter/analysis/diagnosis.h>
#include <flopmeter/analysis/run_evidence.h>
#include <flopmeter/catalog/convention.h>
#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/text.h>
#include <flopmeter/report/report.h>
#include <flopmeter/runstore/run_metadata_json.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace flopmeter {
namespace {

std::optional<std::string> known(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional{text};
}

/// When the run began and each time it began again, with the step that it began with.
void write_starts(JsonWriter& json, const std::vector<RunIndex::Start>& starts) {
  json.key("starts").begin_array();
  for (const auto& [stamp, step] : starts)
    json.begin_object().field("stamp", stamp).field("step", step).end_object();
  json.end_array();
}

void write_run(JsonWriter& json,
               const std::string& source,
               const RunMetadata& about,
               const std::vector<RunIndex::Start>& starts) {
  const Convention* convention = find_convention(about.convention);
  json.key("run").begin_object().field("directory", source).field("run_id", known(about.run_id));
  write_starts(json, starts);
  json.field("model", known(about.model))
      .field("mode", known(about.mode))
      .field("convention", known(about.convention));
  json.field("convention_help",
             convention == nullptr ? std::nullopt : std::optional{convention->help});
  json.field("world_size", about.world_size)
      .field("data_parallel", about.data_parallel)
      .field("devices_per_rank", about.devices_per_rank)
      .field("log_interval", about.log_interval)
      .field("total_steps", about.total_steps);
  json.key("device").begin_object();
  json.field("name", known(about.peaks.device)).field("source", known(about.peaks.source));
  json.key("peak_flops_per_second").begin_object();
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (about.peaks.peaks[i]) json.field(to_string(static_cast<Dtype>(i)), *about.peaks.peaks[i]);
  }
  json.end_object()
      .field("memory_bytes_per_second", about.peaks.memory_bytes_per_second)
      .end_object();
  json.key("model_source");
  about.model_source.known() ? write_json(json, about.model_source)
                             : static_cast<void>(json.null());
  json.end_object();
}

std::optional<std::string> why_no_mfu(const StepTotals& all, const Result<Diagnosis>& diagnosis) {
  if (all.mfu()) return std::nullopt;
  if (!diagnosis) return "No train step is recorded yet.";
  return "No MFU: " + (*diagnosis).no_mfu + ".";
}

template <class Key>
void write_counts(JsonWriter& json,
                  std::string_view name,
                  const std::map<Key, std::int64_t>& counts) {
  json.key(name).begin_array();
  for (const auto& [key, count] : counts)
    json.begin_array().value(to_string(key)).value(count).end_array();
  json.end_array();
}

void write_headline(JsonWriter& json,
                    const RunOverview& overview,
                    const StepTotals& all,
                    const RunMetadata& about,
                    const Result<Diagnosis>& diagnosis) {
  const bool any = all.steps > 0;
  std::optional<double> first_unix;
  std::uint64_t dropped = 0;
  std::map<StepTag, std::int64_t> tagged;
  for (const auto& [rank, totals] : overview.ranks) {
    if (totals.first_unix)
      first_unix = std::min(first_unix.value_or(*totals.first_unix), *totals.first_unix);
    dropped += totals.dropped_records;
  }
  for (const auto& [tag, other] : all.other_tags) tagged[tag] = other.records;
  json.key("headline").begin_object().field("mfu", all.mfu());
  json.field("no_mfu_reason", why_no_mfu(all, diagnosis))
      .field("hfu", all.hfu())
      .field("flops_per_second_device", all.flops_per_second())
      .field("tokens_per_second", all.tokens_per_second())
      .field("samples_per_second", all.samples_per_second())
      .field("step_seconds", all.step_seconds())
      .field("train_steps", all.steps)
      .field("last_step", any ? std::optional{all.last_step} : std::nullopt)
      .field("remaining_seconds", all.remaining(about.total_steps))
      .field("first_unix", first_unix)
      .field("last_unix", any ? std::optional{all.last_unix} : std::nullopt)
      .field("goodput", all.goodput())
      .field("monitor_share", all.monitor_seconds.rate())
      .field("recompute_share",
             all.hardware_flops > 0 ? std::optional{static_cast<double>(all.recompute_flops) /
                                                    static_cast<double>(all.hardware_flops)}
                                    : std::nullopt)
      .field("attention_pairs",
             overview.attention_pairs ? std::optional{to_string(*overview.attention_pairs)}
                                      : std::nullopt)
      .field("dropped_records", dropped);
  write_counts(json, "flops_sources", overview.sources);
  write_counts(json, "tagged_steps", tagged);
  json.end_object();
}

/// Records of other kinds than train steps: evaluation, checkpoint, profiled step, and so on.
void write_events(JsonWriter& json, const std::deque<RunEvent>& events) {
  json.key("events").begin_array();
  for (const RunEvent& event : events) {
    json.begin_object()
        .field("step", event.step)
        .field("kind", to_string(event.tag))
        .field("time_unix", event.time_unix)
        .field("seconds", event.seconds)
        .end_object();
  }
  json.end_array();
}

/// Parts of the program that its records name.
void write_stages(JsonWriter& json, const std::map<std::string, StepTotals>& stages) {
  json.key("stages").begin_array();
  for (const auto& [name, stage] : stages) {
    json.begin_object()
        .field("name", name)
        .field("records", stage.steps)
        .field("seconds", stage.seconds)
        .field("flops_per_second", stage.flops_per_second())
        .field("tokens_per_second", stage.tokens_per_second())
        .field("mfu", stage.mfu())
        .end_object();
  }
  json.end_array();
}

void write_phases(JsonWriter& json, const StepTotals& all) {
  json.key("phases").begin_array();
  for (std::size_t i = 0; i < phase_count; ++i) {
    const auto phase = static_cast<Phase>(i);
    const auto share = all.phase_share(phase);
    if (!share) continue;
    const Field* field = find_step_field("phases." + std::string{to_string(phase)});
    json.begin_object()
        .field("name", to_string(phase))
        .field("help", field->help)
        .field("share", *share)
        .field("mean_seconds", *all.phases[i] / static_cast<double>(all.steps))
        .end_object();
  }
  json.end_array();
}

void write_dtypes(JsonWriter& json, const StepTotals& all) {
  json.key("dtypes").begin_array();
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (all.hardware_flops_by_dtype[i] == 0) continue;
    json.begin_object()
        .field("name", to_string(static_cast<Dtype>(i)))
        .field("flops", all.hardware_flops_by_dtype[i])
        .end_object();
  }
  json.end_array();
}

void write_marks(JsonWriter& json, const std::vector<FindingMark>& marks) {
  json.key("marks").begin_array();
  for (const FindingMark& mark : marks) {
    json.begin_object()
        .field("rule", mark.rule)
        .field("summary", mark.summary)
        .field("first_step", mark.first_step)
        .field("last_step", mark.last_step)
        .field("share", mark.share)
        .end_object();
  }
  json.end_array();
}

/// Content of a document.
struct Shown {
  const std::string& source;
  const RunMetadata& metadata;
  const RunOverview& overview;
  const Result<Diagnosis>& diagnosis;
  const std::vector<RankFigures>& ranks;
  const std::vector<OpProfile>& profiles;
  std::vector<RunIndex::Start> starts{};
  RankMap::Picture rank_map{};
  std::vector<FindingMark> marks{};
  std::optional<StepTimeline> timeline{};
  std::vector<std::string> notes{};
  std::optional<int> rank{};
};

std::string document(const Shown& shown, const ReportOptions& options) {
  const StepTotals all = shown.overview.all();
  std::string text;
  JsonWriter json{text};
  json.begin_object()
      .field("schema", "flopmeter.report/2")
      .field("mfu", all.mfu())
      .field("goodput", all.goodput())
      .field("version", options.version)
      .field("written_unix", options.written_unix)
      .field("rank", shown.rank);
  write_run(json, shown.source, shown.metadata, shown.starts);
  write_headline(json, shown.overview, all, shown.metadata, shown.diagnosis);
  write_timeline(json, shown.overview.timeline);
  write_events(json, shown.overview.events);
  write_phases(json, all);
  write_stages(json, shown.overview.stages);
  write_dtypes(json, all);
  write_ranks(json, shown.overview, shown.ranks);
  json.key("rank_map");
  write_rank_map(json, shown.rank_map);
  write_diagnosis(json, shown.diagnosis);
  write_op_profile(json, shown.profiles, shown.timeline.has_value());
  write_step_timeline(json, shown.timeline, shown.profiles);
  write_marks(json, shown.marks);
  json.key("notes").begin_array();
  for (const std::string& note : shown.notes) json.value(note);
  json.end_array().end_object();
  return text;
}

std::vector<std::string> notes_of(const RunIndex& index) {
  std::vector<std::string> notes;
  if (!index.run().note.empty()) notes.push_back(index.run().note);
  if (index.damaged_lines() > 0)
    notes.push_back(grouped(index.damaged_lines()) +
                    " damaged lines of the record streams were passed over.");
  return notes;
}

}  // namespace

std::string report_json(const RunIndex& index,
                        const ReportOptions& options,
                        const std::optional<DeviceReport>& recorded) {
  Evidence evidence = index.evidence();
  return document({.source = index.run().path,
                   .metadata = index.run().metadata,
                   .overview = index.overview(),
                   .diagnosis = diagnose(evidence, recorded),
                   .ranks = evidence.ranks,
                   .profiles = evidence.profiles,
                   .starts = index.starts(),
                   .rank_map = index.rank_map().picture(),
                   .marks = index.marks(),
                   .timeline = recorded ? std::optional{recorded->timeline} : std::nullopt,
                   .notes = notes_of(index)},
                  options);
}

std::string report_json(const ReportContent& content, const ReportOptions& options) {
  RunOverview overview;
  for (const StepRecord& record : content.records) overview.add(record);
  const Result<Diagnosis> diagnosis =
      content.diagnosis.totals.steps > 0
          ? Result<Diagnosis>{content.diagnosis}
          : Error{ErrorCode::not_found, "No step is recorded, so there is no time budget."};
  return document({.source = content.source,
                   .metadata = content.metadata,
                   .overview = overview,
                   .diagnosis = diagnosis,
                   .ranks = {},
                   .profiles = content.profiles,
                   .timeline = content.timeline,
                   .notes = content.notes},
                  options);
}

std::optional<std::string> rank_json(const RunIndex& index,
                                     int rank,
                                     const ReportOptions& options) {
  constexpr std::size_t most_records = 10'000;
  if (!index.overview().ranks.contains(rank)) return std::nullopt;
  RunOverview overview;
  for (const StepRecord& record : read_window(index.run(), rank, most_records, true))
    overview.add(record);
  const Evidence evidence = read_evidence(
      index.run(), {.rank = rank, .totals = overview.all(), .ranks = std::vector<RankFigures>{}});
  return document({.source = index.run().path,
                   .metadata = index.run().metadata,
                   .overview = overview,
                   .diagnosis = diagnose(evidence),
                   .ranks = evidence.ranks,
                   .profiles = evidence.profiles,
                   .starts = index.starts(),
                   .notes = notes_of(index),
                   .rank = rank},
                  options);
}

std::string window_json(const RunIndex& index, std::int64_t first, std::int64_t last) {
  constexpr std::int64_t most_bytes = 12 << 20;  // about a tenth of a second
  constexpr std::size_t most_buckets = 512;
  RunOverview overview{most_buckets};
  std::string text;
  JsonWriter json{text};
  json.begin_object();
  const auto add = [&](const StepRecord& record) { overview.timeline.add(record); };
  if (index.read_steps(first, last, most_bytes, add)) {
    write_timeline(json, overview.timeline);
  } else {
    json.key("timeline").null();
  }
  json.end_object();
  return text;
}

namespace {

double stream_bytes(const RunDirectory& run) {
  double bytes = 1;
  for (const RankFile& file : run.files) {
    std::error_code code;
    const auto size = std::filesystem::file_size(file.path, code);
    if (!code) bytes += static_cast<double>(size);
  }
  return bytes;
}

}  // namespace

Result<std::string> report_json(const std::string& directory, const ReportOptions& options) {
  RunIndex index{directory};
  constexpr std::int64_t chunk = 16 << 20;
  double done = 0;
  for (bool more = true; more;) {
    const auto read = index.advance(chunk);
    if (!read) return read.error();
    more = *read;
    done += chunk;
    if (more && options.progress) options.progress(std::min(done / stream_bytes(index.run()), 1.0));
  }
  const std::vector<int> ranks = index.run().ranks();
  return report_json(
      index, options, ranks.empty() ? std::nullopt : read_run_trace(index.run(), ranks.front()));
}

}  // namespace flopmeter
