// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/record_json.h>

namespace flopmeter {
namespace {

void write_value(JsonWriter& json, const FieldValue& value) {
  if (const auto* integer = std::get_if<WideInt>(&value)) {
    json.value(*integer);
  } else if (const auto* number = std::get_if<double>(&value)) {
    json.value(*number);
  } else if (const auto* text = std::get_if<std::string_view>(&value)) {
    json.value(*text);
  } else {
    json.null();
  }
}

}  // namespace

void write_record(JsonWriter& json, const StepRecord& record, bool more) {
  json.begin_object().field("v", record_schema);
  std::string_view group;
  for (const Field& field : step_fields()) {
    if (field.group != group) {
      if (!group.empty()) json.end_object();
      group = field.group;
      if (!group.empty()) json.key(group).begin_object();
    }
    const FieldValue value = field.read(record);
    if (!group.empty() && std::holds_alternative<std::monostate>(value)) continue;
    json.key(field.name);
    write_value(json, value);
  }
  if (!group.empty()) json.end_object();
  if (!more) json.end_object();
}

}  // namespace flopmeter
