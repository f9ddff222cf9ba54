// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/step_timeline.h>
#include <flopmeter/core/text.h>

#include <map>
#include <string_view>

namespace flopmeter {

void write_json(JsonWriter& json, const StepTimeline& timeline) {
  constexpr int digits = 7;  // tenths of a microsecond
  json.begin_object();
  if (!timeline.step.empty()) json.field("step", timeline.step);
  json.field("seconds", timeline.seconds).field("omitted", timeline.omitted);
  std::map<std::string_view, std::size_t> names;
  std::vector<std::string_view> order;
  json.key("lanes").begin_array();
  for (const StepTimeline::Lane& lane : timeline.lanes) {
    json.begin_object().field("name", lane.name).field("kind", lane.kind);
    json.key("spans").begin_array();
    for (const StepTimeline::Span& span : lane.spans) {
      const auto name = names.try_emplace(span.name, order.size());
      if (name.second) order.push_back(span.name);
      json.begin_array().raw(fixed(span.start, digits)).raw(fixed(span.seconds, digits));
      json.value(name.first->second).end_array();
    }
    json.end_array().end_object();
  }
  json.end_array().key("names").begin_array();
  for (const std::string_view name : order) json.value(name);
  json.end_array().end_object();
}

}  // namespace flopmeter
