// SPDX-License-Identifier: Apache-2.0
#include "report_data.h"
#include "report_diagnosis.h"

#include <flopmeter/analysis/diagnosis.h>
#include <flopmeter/analysis/run_evidence.h>
#include <flopmeter/catalog/convention.h>
#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/text.h>
#include <flopmeter/report/report.h>
#include <flopmeter/runstore/run_metadata_json.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>

namespace flopmeter {
namespace {

constexpr std::size_t most_rank_rows = 64;
constexpr std::size_t most_rank_bars = 600;
constexpr std::size_t most_map_rows = 128;
constexpr std::size_t all_ranks = std::numeric_limits<std::size_t>::max();

/// Six digits are more than a picture shows.
void write_short(JsonWriter& json, double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(
      buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::general, 6);
  json.raw({buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data())});
}

std::optional<std::string> known(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional{text};
}

/// When the run began and each time it began again, with the step that it began with.
void write_starts(JsonWriter& json, const RunIndex& index) {
  json.key("starts").begin_array();
  for (const auto& [stamp, step] : index.starts())
    json.begin_object().field("stamp", stamp).field("step", step).end_object();
  json.end_array();
}

void write_run(JsonWriter& json, const RunIndex& index) {
  const RunDirectory& run = index.run();
  const RunMetadata& about = run.metadata;
  const Convention* convention = find_convention(about.convention);
  json.key("run").begin_object().field("directory", run.path).field("run_id", known(about.run_id));
  write_starts(json, index);
  json.field("model", known(about.model))
      .field("mode", known(about.mode))
      .field("convention", known(about.convention));
  json.field("convention_help",
             convention == nullptr ? std::nullopt : std::optional{convention->help});
  json.field("world_size", about.world_size)
      .field("data_parallel", about.data_parallel)
      .field("devices_per_rank", about.devices_per_rank)
      .field("log_interval", about.log_interval);
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

std::optional<std::string> why_no_mfu(const StepTotals& all, const RunMetadata& about) {
  if (all.mfu()) return std::nullopt;
  if (all.steps == 0) return "No train step is recorded yet.";
  const bool peak = std::any_of(about.peaks.peaks.begin(),
                                about.peaks.peaks.end(),
                                [](const auto& p) { return p.has_value(); });
  if (!peak)
    return "No MFU: the peak of this device is not known. Set the peak or measure it with "
           "flopmeter peak.";
  return "No MFU: the FLOPs of the steps are not known.";
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
                    const RunMetadata& about) {
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
  json.field("no_mfu_reason", why_no_mfu(all, about))
      .field("hfu", all.hfu())
      .field("flops_per_second_device", all.flops_per_second())
      .field("tokens_per_second", all.tokens_per_second())
      .field("samples_per_second", all.samples_per_second())
      .field("step_seconds", all.step_seconds())
      .field("train_steps", all.steps)
      .field("last_step", any ? std::optional{all.last_step} : std::nullopt)
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

void write_timeline(JsonWriter& json, const Timeline& timeline) {
  const auto& buckets = timeline.buckets();
  const auto column = [&](std::string_view name, auto write) {
    json.key(name).begin_array();
    for (const auto& [index, bucket] : buckets) write(bucket);
    json.end_array();
  };
  json.key("timeline").begin_object().field("steps_per_bucket", timeline.steps_per_bucket());
  column("step", [&](const Bucket& s) { json.value(s.first_step); });
  column("last_step", [&](const Bucket& s) { json.value(s.last_step); });
  column("time", [&](const Bucket& s) { json.raw(fixed(s.time_unix, 3)); });
  json.key("curves").begin_array();
  for (std::size_t i = 0; i < timeline.curves().size(); ++i) {
    const Field& field = *timeline.curves()[i];
    const auto values = [&](std::string_view name, auto pick) {
      column(name, [&](const Bucket& s) {
        s.spreads[i].count == 0 ? void(json.null()) : write_short(json, pick(s.spreads[i]));
      });
    };
    const bool measured = std::any_of(buckets.begin(), buckets.end(), [i](const auto& s) {
      return s.second.spreads[i].count > 0;
    });
    if (!measured) continue;
    json.begin_object().field("field",
                              field.group.empty()
                                  ? std::string{field.name}
                                  : std::string{field.group} + "." + std::string{field.name});
    json.field("unit", to_string(field.unit)).field("help", field.help);
    if (field.group == "phases") {  // over all steps, so that phases add up to the mean step
      column("mean", [&](const Bucket& s) {
        write_short(json, s.spreads[i].sum / static_cast<double>(s.steps));
      });
      json.end_object();
      continue;
    }
    values("mean", [](const ValueSpread& spread) { return *spread.mean(); });
    values("low", [](const ValueSpread& spread) { return spread.low; });
    values("high", [](const ValueSpread& spread) { return spread.high; });
    json.end_object();
  }
  json.end_array().end_object();
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

void write_ranks(JsonWriter& json,
                 const std::map<int, RankTotals>& ranks,
                 const std::vector<RankFigures>& judged) {
  std::set<int> slow;
  for (const RankFigures& rank : judged) {
    if (rank.verdict != Verdict::normal) slow.insert(rank.rank);
  }
  double newest = 0;
  for (const auto& [rank, totals] : ranks) newest = std::max(newest, totals.steps.last_unix);
  // Compared with the other ranks, not the clock: a finished run is not silent.
  const auto silent = [newest](const StepTotals& totals) {
    const double step = totals.step_seconds().value_or(Seconds{}).value;
    return newest - totals.last_unix > std::max(30.0, 10 * step);
  };
  using Row = std::pair<int, const RankTotals*>;
  std::vector<Row> rows;
  std::vector<double> own;
  for (const auto& [rank, totals] : ranks) {
    rows.emplace_back(rank, &totals);
    own.push_back(own_seconds(totals.steps));
  }
  const auto middle = own.begin() + static_cast<std::ptrdiff_t>(own.size() / 2);
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
        .field("silent", silent(totals->steps))
        .field("mfu", totals->steps.mfu())
        .field("data_share", totals->steps.phase_share(Phase::data))
        .field("communication_share", totals->steps.phase_share(Phase::communication))
        .field("memory_peak_bytes", totals->memory_peak_bytes)
        .field("dropped_records", totals->dropped_records)
        .end_object();
  }
  json.end_array().end_object();
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

void write_rank_map(JsonWriter& json, const RankMap::Picture& picture) {
  json.begin_object()
      .field("first_step", picture.first_step)
      .field("column_steps", picture.column_steps)
      .field("ranks_per_row", picture.ranks_per_row);
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

/// Content of a document.
struct Shown {
  const RunIndex& index;
  const RunOverview& overview;
  Evidence evidence;
  std::vector<FindingMark> marks;
  std::optional<int> rank;
};

std::string document(const Shown& shown, const ReportOptions& options) {
  const RunIndex& index = shown.index;
  const RunDirectory& run = index.run();
  const RunOverview& overview = shown.overview;
  const Result<Diagnosis> diagnosis = diagnose(shown.evidence);
  const StepTotals all = overview.all();
  std::string text;
  JsonWriter json{text};
  json.begin_object()
      .field("schema", "flopmeter.report/2")
      .field("mfu", all.mfu())
      .field("goodput", all.goodput())
      .field("version", options.version)
      .field("written_unix", options.written_unix)
      .field("rank", shown.rank);
  write_run(json, index);
  write_headline(json, overview, all, run.metadata);
  write_timeline(json, overview.timeline);
  write_phases(json, all);
  write_dtypes(json, all);
  write_ranks(json, overview.ranks, shown.evidence.ranks);
  json.key("rank_map");
  write_rank_map(json, index.rank_map().picture(0, shown.rank ? 0 : all_ranks, most_map_rows));
  write_diagnosis(json, diagnosis);
  write_op_profile(json, shown.evidence.profiles);
  write_marks(json, shown.marks);
  json.key("notes").begin_array();
  if (!run.note.empty()) json.value(run.note);
  if (index.damaged_lines() > 0)
    json.value(grouped(index.damaged_lines()) +
               " damaged lines of the record streams were passed over.");
  json.end_array().end_object();
  return text;
}

}  // namespace

std::string report_json(const RunIndex& index, const ReportOptions& options) {
  return document({index, index.overview(), index.evidence(), index.marks(), std::nullopt},
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
  Evidence evidence = read_evidence(
      index.run(), {.rank = rank, .totals = overview.all(), .ranks = std::vector<RankFigures>{}});
  return document({index, overview, std::move(evidence), {}, rank}, options);
}

std::string rank_map_json(const RunIndex& index,
                          std::optional<long long> first_rank,
                          std::optional<long long> ranks) {
  const auto bounded = [](long long value) {
    return std::clamp<long long>(value, 0, std::numeric_limits<int>::max());
  };
  std::string text;
  JsonWriter json{text};
  write_rank_map(
      json,
      index.rank_map().picture(static_cast<int>(bounded(first_rank.value_or(0))),
                               ranks ? static_cast<std::size_t>(bounded(*ranks)) : all_ranks,
                               most_map_rows));
  return text;
}

std::string curves_csv(const Timeline& timeline) {
  std::string text = "first_step,last_step,time_unix";
  for (const Field* field : timeline.curves()) {
    for (const std::string_view kind : {"mean", "low", "high"})
      text.append(",").append(full_name(*field)).append("_").append(kind);
  }
  text += "\n";
  for (const auto& [index, bucket] : timeline.buckets()) {
    text += std::to_string(bucket.first_step) + "," + std::to_string(bucket.last_step) + "," +
            fixed(bucket.time_unix, 3);
    for (const ValueSpread& spread : bucket.spreads) {
      if (spread.count == 0) {
        text += ",,,";
        continue;
      }
      for (const double value : {*spread.mean(), spread.low, spread.high})
        text += "," + shortest(value);
    }
    text += "\n";
  }
  return text;
}

Result<std::string> report_json(const std::string& directory, const ReportOptions& options) {
  RunIndex index{directory};
  for (bool more = true; more;) {
    const auto read = index.advance();
    if (!read) return read.error();
    more = *read;
  }
  return report_json(index, options);
}

}  // namespace flopmeter
