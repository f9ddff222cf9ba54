// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/op_profile.h>

#include <array>
#include <map>
#include <tuple>

namespace flopmeter {
namespace {

constexpr std::array<std::string_view, op_kind_count> kinds = {
    "compute", "memory", "tiny", "unknown"};

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

void write_gap(JsonWriter& json, const IdleSpan& gap) {
  json.begin_object().field("phase", to_string(gap.phase));
  if (gap.recompute) json.field("recompute", true);
  if (gap.pause) json.field("pause", true);
  json.field("count", gap.count).field("seconds", gap.time).end_object();
}

}  // namespace

std::string_view to_string(OpKind kind) {
  return kinds[static_cast<std::size_t>(kind)];
}

std::optional<OpKind> parse_op_kind(std::string_view text) {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] == text) return static_cast<OpKind>(i);
  }
  return std::nullopt;
}

Seconds OpProfile::self_time(OpKind kind) const {
  Seconds sum;
  for (const OpProfileRow& row : rows) {
    if (row.kind == kind) sum.value += row.self.value;
  }
  return sum;
}

void write_json(JsonWriter& json, const OpProfile& profile, std::size_t most) {
  json.begin_object()
      .field("v", 1)
      .field("step", profile.step)
      .field("time_unix", profile.time_unix)
      .field("wall_seconds", profile.wall)
      .field("busy_seconds", profile.busy)
      .field("calls", profile.calls)
      .field("on_device", profile.on_device);
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
  json.key("gaps").begin_array();
  for (const IdleSpan& gap : profile.gaps) write_gap(json, gap);
  json.end_array().end_object();
}

}  // namespace flopmeter
