// SPDX-License-Identifier: Apache-2.0
#include "json_input.h"
#include "line_reader.h"

#include <flopmeter/core/json_writer.h>
#include <flopmeter/runstore/profile_stream.h>

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <tuple>

namespace flopmeter {
namespace {

constexpr int profile_schema = 1;

void write_row(JsonWriter& json, const OpProfileRow& row) {
  json.begin_object()
      .field("name", row.name)
      .field("kind", to_string(row.kind))
      .field("phase", to_string(row.phase))
      .field("backward", row.backward)
      .field("elements", row.elements)
      .field("calls", row.calls)
      .field("self_seconds", row.self);
  if (row.recompute) json.field("recompute", true);
  if (row.across_devices) json.field("across_devices", true);
  if (!row.shape.empty()) json.field("shape", row.shape);
  if (row.flops != 0) json.field("flops", row.flops).field("bytes", row.bytes);
  json.end_object();
}

void write_idle(JsonWriter& json, const IdleSpan& span) {
  json.begin_object().field("phase", to_string(span.phase));
  if (span.recompute) json.field("recompute", true);
  if (span.stall) json.field("stall", true);
  json.field("count", span.count).field("seconds", span.time).end_object();
}

Phase phase_of(const JsonElement& json) {
  const std::string name = json_text(json, "phase");
  for (std::size_t i = 0; i < phase_count; ++i) {
    if (to_string(static_cast<Phase>(i)) == name) return static_cast<Phase>(i);
  }
  return Phase::other;
}

/// Empty if a value that every row has is missing.
std::optional<OpProfileRow> read_row(const JsonElement& json) {
  const auto name = json_get<std::string_view>(json, "name");
  const auto backward = json_get<bool>(json, "backward");
  const auto elements = json_get<std::int64_t>(json, "elements");
  const auto calls = json_get<std::uint64_t>(json, "calls");
  const auto self = json_get<double>(json, "self_seconds");
  if (!name || !backward || !elements || !calls || !self) return std::nullopt;
  OpProfileRow row;
  row.name = *name;
  row.kind = parse_op_kind(json_text(json, "kind")).value_or(OpKind::unknown);
  row.phase = phase_of(json);
  row.backward = *backward;
  row.elements = *elements;
  row.calls = *calls;
  row.self = {*self};
  row.recompute = json_get<bool>(json, "recompute").value_or(false);
  row.across_devices = json_get<bool>(json, "across_devices").value_or(false);
  row.shape = json_text(json, "shape");
  row.flops = json_get<std::uint64_t>(json, "flops").value_or(0);
  row.bytes = json_get<std::uint64_t>(json, "bytes").value_or(0);
  return row;
}

std::optional<IdleSpan> read_idle(const JsonElement& json) {
  const auto count = json_get<std::uint64_t>(json, "count");
  const auto seconds = json_get<double>(json, "seconds");
  if (!count || !seconds) return std::nullopt;
  return IdleSpan{.phase = phase_of(json),
                  .recompute = json_get<bool>(json, "recompute").value_or(false),
                  .stall = json_get<bool>(json, "stall").value_or(false),
                  .count = *count,
                  .time = {*seconds}};
}

/// Reads an array; false if an element is damaged or there are too many.
template <class T, class Read>
bool read_all(const JsonElement& json, std::string_view key, std::vector<T>& all, Read read) {
  const auto list = json_get<simdjson::dom::array>(json, key);
  if (!list) return false;
  for (const JsonElement element : *list) {
    auto one = read(element);
    if (!one || all.size() == InputLimits::profile_rows) return false;
    all.push_back(*std::move(one));
  }
  return true;
}

/// A triple of start, length, and the number of a name.
std::optional<StepTimeline::Span> read_span(const JsonElement& json,
                                            const std::vector<std::string>& names) {
  StepTimeline::Span span;
  std::uint64_t name = 0;
  if (json.at(0).get(span.start) != simdjson::SUCCESS ||
      json.at(1).get(span.seconds) != simdjson::SUCCESS ||
      json.at(2).get(name) != simdjson::SUCCESS || name >= names.size())
    return std::nullopt;
  span.name = names[name];
  return span;
}

std::optional<StepTimeline> read_timeline(const JsonElement& json) {
  StepTimeline timeline;
  timeline.seconds = json_get<double>(json, "seconds").value_or(0);
  timeline.omitted = json_get<std::int64_t>(json, "omitted").value_or(0);
  std::vector<std::string> names;
  const auto read_name = [](const JsonElement& name) -> std::optional<std::string> {
    std::string_view text;
    if (name.get(text) != simdjson::SUCCESS) return std::nullopt;
    return std::string{text};
  };
  const auto read_lane = [&](const JsonElement& lane) -> std::optional<StepTimeline::Lane> {
    StepTimeline::Lane result{
        .name = json_text(lane, "name"), .kind = json_text(lane, "kind"), .spans = {}};
    const auto read = [&](const JsonElement& span) { return read_span(span, names); };
    if (!read_all(lane, "spans", result.spans, read)) return std::nullopt;
    return result;
  };
  if (!(timeline.seconds > 0) || !read_all(json, "names", names, read_name) ||
      !read_all(json, "lanes", timeline.lanes, read_lane))
    return std::nullopt;
  return timeline;
}

std::optional<OpProfile> parse(JsonInput& input, std::string_view line) {
  const auto json = input.object(line);
  if (!json || json_get<std::int64_t>(*json, "v") != profile_schema) return std::nullopt;
  const auto step = json_get<std::int64_t>(*json, "step");
  const auto time = json_get<double>(*json, "time_unix");
  const auto wall = json_get<double>(*json, "wall_seconds");
  const auto busy = json_get<double>(*json, "busy_seconds");
  const auto calls = json_get<std::uint64_t>(*json, "calls");
  const auto on_device = json_get<bool>(*json, "on_device");
  if (!step || !time || !wall || !busy || !calls || !on_device) return std::nullopt;
  OpProfile profile;
  profile.step = *step;
  profile.time_unix = *time;
  profile.wall = {*wall};
  profile.busy = {*busy};
  profile.calls = *calls;
  profile.on_device = *on_device;
  profile.device_times = json_get<bool>(*json, "device_times").value_or(false);
  if (!read_all(*json, "rows", profile.rows, read_row)) return std::nullopt;
  if (json_get<JsonElement>(*json, "idle") && !read_all(*json, "idle", profile.idle, read_idle))
    return std::nullopt;
  if (const auto timeline = json_get<JsonElement>(*json, "timeline"))
    profile.timeline = read_timeline(*timeline).value_or(StepTimeline{});
  return profile;
}

}  // namespace

std::string to_json(const OpProfile& profile, std::size_t most) {
  std::string text;
  JsonWriter json{text};
  json.begin_object()
      .field("v", profile_schema)
      .field("step", profile.step)
      .field("time_unix", profile.time_unix)
      .field("wall_seconds", profile.wall)
      .field("busy_seconds", profile.busy)
      .field("calls", profile.calls)
      .field("on_device", profile.on_device);
  if (profile.device_times) json.field("device_times", true);
  json.key("rows").begin_array();
  std::map<std::tuple<OpKind, Phase, bool>, OpProfileRow> rest;
  for (std::size_t i = 0; i < profile.rows.size(); ++i) {
    const OpProfileRow& row = profile.rows[i];
    if (i < most) {
      write_row(json, row);
      continue;
    }
    OpProfileRow& sum = rest[{row.kind, row.phase, row.recompute}];
    sum.name = "others";
    sum.kind = row.kind;
    sum.phase = row.phase;
    sum.recompute = row.recompute;
    sum.calls += row.calls;
    sum.self.value += row.self.value;
    sum.flops += row.flops;
    sum.bytes += row.bytes;
  }
  for (const auto& [key, row] : rest) write_row(json, row);
  json.end_array();
  json.key("idle").begin_array();
  for (const IdleSpan& span : profile.idle) write_idle(json, span);
  json.end_array();
  if (!profile.timeline.lanes.empty()) {
    json.key("timeline");
    write_json(json, profile.timeline);
  }
  json.end_object();
  return text;
}

std::optional<OpProfile> parse_op_profile(std::string_view line) {
  JsonInput input;
  return parse(input, line);
}

bool ProfileWriter::add(const OpProfile& profile) {
  const std::string line = to_json(profile) + "\n";
  bytes_ += static_cast<std::int64_t>(line.size());
  if (bytes_ > limit_bytes_) return true;
  const int fd = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return false;
  const off_t size = lseek(fd, 0, SEEK_END);
  const bool complete = write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (!complete && size >= 0) {  // an incomplete line would damage the next one
    [[maybe_unused]] const int ignored = ftruncate(fd, size);
  }
  close(fd);
  return complete;
}

std::vector<OpProfile> read_profiles(const RunDirectory& run, int rank) {
  std::vector<OpProfile> profiles;
  std::size_t rows = 0;
  JsonInput input;
  std::string stamp;
  for (const RankFile& file : run.files_of(rank)) {
    if (file.stamp == std::exchange(stamp, file.stamp)) continue;
    LineReader lines{RunLayout{run.path, file.stamp, rank}.op_profile(),
                     InputLimits::profile_line_bytes};
    while (const auto line = lines.next()) {
      auto profile = parse(input, *line);
      if (!profile) continue;
      if (!profiles.empty()) profiles.back().timeline = {};  // only the newest is shown
      rows += profile->rows.size() + profile->idle.size();
      profiles.push_back(*std::move(profile));
      while (profiles.size() > InputLimits::profiles_per_rank ||
             rows > InputLimits::profile_rows_per_rank) {
        rows -= profiles.front().rows.size() + profiles.front().idle.size();
        profiles.erase(profiles.begin());
      }
    }
  }
  return profiles;
}

}  // namespace flopmeter
