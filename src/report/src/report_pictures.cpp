// SPDX-License-Identifier: Apache-2.0
#include "report_pictures.h"

#include "report_data.h"

#include <flopmeter/core/text.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>

namespace flopmeter {

void write_short(JsonWriter& json, double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(
      buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::general, 6);
  json.raw({buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data())});
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

void write_step_timeline(JsonWriter& json, const std::optional<StepTimeline>& timeline) {
  json.key("step_timeline");
  if (!timeline || timeline->lanes.empty()) {
    json.null();
    return;
  }
  json.begin_object()
      .field("step", timeline->step.empty() ? std::nullopt : std::optional{timeline->step})
      .field("seconds", timeline->seconds)
      .field("omitted", timeline->omitted);
  std::map<std::string_view, std::size_t> names;  // each name once: most repeat
  std::vector<std::string_view> order;
  json.key("lanes").begin_array();
  for (const StepTimeline::Lane& lane : timeline->lanes) {
    json.begin_object().field("name", lane.name).field("kind", lane.kind);
    json.key("spans").begin_array();
    for (const StepTimeline::Span& span : lane.spans) {
      const auto name = names.try_emplace(span.name, order.size());
      if (name.second) order.push_back(span.name);
      json.begin_array().raw(fixed(span.start, 9)).raw(fixed(span.seconds, 9));
      json.value(name.first->second).end_array();
    }
    json.end_array().end_object();
  }
  json.end_array().key("names").begin_array();
  for (const std::string_view name : order) json.value(name);
  json.end_array().end_object();
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

}  // namespace flopmeter
