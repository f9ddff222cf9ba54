// SPDX-License-Identifier: Apache-2.0
#include "line_reader.h"

#include <flopmeter/core/step_fields.h>
#include <flopmeter/runstore/input_limits.h>
#include <flopmeter/runstore/record_stream.h>

#include <simdjson.h>

#include <charconv>

namespace flopmeter {
namespace {

namespace ondemand = simdjson::ondemand;

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

/// Finds the field of each key.  Records are written in the order of the table, so the row after
/// the last one is nearly always right.
class FieldCursor {
 public:
  const Field* find(std::string_view group, std::string_view name) {
    const auto fields = step_fields();
    for (std::size_t tried = 0; tried < fields.size(); ++tried) {
      const Field& field = fields[next_];
      next_ = next_ + 1 == fields.size() ? 0 : next_ + 1;
      if (field.name == name && field.group == group) return &field;
    }
    return nullptr;
  }

 private:
  std::size_t next_ = 0;
};

/// A scalar; false if it is damaged or not one.
bool read_scalar(ondemand::value& json, FieldValue& value) {
  std::string_view token = json.raw_json_token();
  if (token.empty()) return false;
  if (token.front() == '"') {
    std::string_view text;
    if (json.get_string().get(text) != simdjson::SUCCESS) return false;
    value = text;
    return true;
  }
  if (token.front() == 'n') {
    value = std::monostate{};
    return token.substr(0, 4) == "null" && token.find_last_not_of(" \r\n") == 3;
  }
  while (!token.empty() && (token.back() == ' ' || token.back() == '\r')) token.remove_suffix(1);
  if (token.size() <= 18) {  // fits 64 bits
    std::int64_t whole = 0;
    const auto [end, code] = std::from_chars(token.data(), token.data() + token.size(), whole);
    if (code == std::errc{} && end == token.data() + token.size()) {
      value = static_cast<WideInt>(whole);
      return true;
    }
  } else if (const auto wide = parse_wide_int(token)) {
    value = *wide;
    return true;
  }
  double number = 0;
  if (json.get_double().get(number) != simdjson::SUCCESS) return false;
  value = number;
  return true;
}

/// Sets one field.  An unknown key is one of a later version and is skipped.
bool read_field(ondemand::value& json, const Field* field, StepRecord& record) {
  if (field == nullptr || field->set == nullptr) return true;
  FieldValue value;
  if (!read_scalar(json, value)) return false;
  if (const auto number = as_number(value);
      number && !InputLimits::is_plausible(field->unit, *number))
    return false;
  return std::holds_alternative<std::monostate>(value) || field->set(record, value);
}

bool read_group(ondemand::object& object,
                std::string_view group,
                FieldCursor& cursor,
                StepRecord& record) {
  for (auto member : object) {
    std::string_view key;
    ondemand::value value;
    if (member.unescaped_key().get(key) != simdjson::SUCCESS ||
        member.value().get(value) != simdjson::SUCCESS ||
        !read_field(value, cursor.find(group, key), record))
      return false;
  }
  return true;
}

bool read_document(ondemand::document& document, StepRecord& record) {
  ondemand::object object;
  if (document.get_object().get(object) != simdjson::SUCCESS) return false;
  FieldCursor cursor;
  bool has_version = false;
  bool has_step = false;
  for (auto member : object) {
    std::string_view key;
    ondemand::value value;
    if (member.unescaped_key().get(key) != simdjson::SUCCESS ||
        member.value().get(value) != simdjson::SUCCESS)
      return false;
    ondemand::json_type type{};
    if (value.type().get(type) != simdjson::SUCCESS) return false;
    if (type == ondemand::json_type::object) {
      ondemand::object below;
      if (value.get_object().get(below) != simdjson::SUCCESS ||
          !read_group(below, key, cursor, record))
        return false;
      continue;
    }
    if (!has_version && key == "v") {
      std::int64_t version = 0;
      if (value.get_int64().get(version) != simdjson::SUCCESS || version != record_schema)
        return false;
      has_version = true;
      continue;
    }
    const Field* field = cursor.find("", key);
    if (!read_field(value, field, record)) return false;
    has_step = has_step || key == "step";
  }
  const bool at_end = document.current_location().error() == simdjson::OUT_OF_BOUNDS;
  return has_version && has_step && at_end;
}

/// `line` is followed by SIMDJSON_PADDING readable bytes.
std::optional<StepRecord> parse_padded(ondemand::parser& parser, std::string_view line) {
  ondemand::document document;
  std::optional<StepRecord> record{std::in_place};
  if (parser.iterate(line.data(), line.size(), line.size() + simdjson::SIMDJSON_PADDING)
              .get(document) != simdjson::SUCCESS ||
      !read_document(document, *record))
    record.reset();
  return record;
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

std::optional<StepRecord> parse_record(std::string_view line) {
  ondemand::parser parser;
  std::string padded{line};
  padded.resize(line.size() + simdjson::SIMDJSON_PADDING);
  return parse_padded(parser, {padded.data(), line.size()});
}

struct RecordReader::State {
  LineReader lines;
  std::int64_t damaged = 0;
  ondemand::parser parser{};
};

RecordReader::RecordReader(std::string path, std::int64_t from)
    : state_(new State{{std::move(path), InputLimits::record_line_bytes, from}}) {}
RecordReader::~RecordReader() = default;

std::optional<StepRecord> RecordReader::next() {
  while (const auto line = state_->lines.next()) {
    if (auto record = parse_padded(state_->parser, *line)) return record;
    ++state_->damaged;
  }
  return std::nullopt;
}

std::int64_t RecordReader::damaged_lines() const {
  return state_->damaged + state_->lines.skipped_lines();
}
std::int64_t RecordReader::offset() const {
  return state_->lines.offset();
}
bool RecordReader::gave_up() const {
  return state_->lines.gave_up();
}

}  // namespace flopmeter
