// SPDX-License-Identifier: Apache-2.0
#include "report_curves.h"

#include "report_data.h"

#include <flopmeter/core/text.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace flopmeter {

void write_short(JsonWriter& json, double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(
      buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::general, 6);
  json.raw({buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data())});
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
    if (i == timeline.quantile_curve()) {
      const auto quantile = [&](std::string_view name, double share) {
        column(name, [&](const Bucket& s) {
          const auto value = s.quantiles.at(share);
          value ? write_short(json, *value) : void(json.null());
        });
      };
      quantile("p5", 0.05);
      quantile("p95", 0.95);
    }
    values("low", [](const ValueSpread& spread) { return spread.low; });
    values("high", [](const ValueSpread& spread) { return spread.high; });
    json.end_object();
  }
  json.end_array().end_object();
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
