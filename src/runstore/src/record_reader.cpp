// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/record_json.h>
#include <flopmeter/runstore/record_reader.h>

#include <fcntl.h>
#include <simdjson.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <vector>

namespace flopmeter {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::size_t chunk_bytes = 256 << 10U;
constexpr std::size_t longest_line = 1 << 20U;

/// Finds the field of each key.  Records are written in the list's order, so the one after the last
/// is nearly always right.
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

/// A scalar; false for what is none or is damaged.
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
    return json.is_null();
  }
  while (!token.empty() && (token.back() == ' ' || token.back() == '\r')) token.remove_suffix(1);
  if (token.size() <= 18) {  // sure to fit 64 bits
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

/// Sets one field; a key that is not known is from a later version and passed over.
bool read_field(ondemand::value& json, const Field* field, StepRecord& record) {
  if (field == nullptr || field->set == nullptr) return true;
  FieldValue value;
  if (!read_scalar(json, value)) return false;
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

/// Model FLOPs by dtype are not stored; with one dtype there is no doubt.
void restore_model_flops(StepRecord& record) {
  if (!record.model_flops || record.model_flops->value < 0 ||
      static_cast<std::uint64_t>(record.model_flops->value) != record.model_flops->value)
    return;
  std::size_t found = dtype_count;
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (record.hardware_flops_by_dtype[i] == 0) continue;
    if (found != dtype_count) return;
    found = i;
  }
  if (found != dtype_count)
    record.model_flops_by_dtype[found] = static_cast<std::uint64_t>(record.model_flops->value);
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
  restore_model_flops(record);
  const bool at_end = document.current_location().error() == simdjson::OUT_OF_BOUNDS;
  return has_version && has_step && at_end;
}

/// `line` lies in a buffer that has SIMDJSON_PADDING readable bytes after it.
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

struct RecordReader::State {
  std::string path;
  std::vector<char> buffer;  ///< unread bytes from `begin` to `end`, then padding
  std::size_t begin = 0;
  std::size_t end = 0;
  std::int64_t offset = 0;  ///< of `begin` in the file
  std::int64_t damaged = 0;
  bool skipping = false;  ///< inside a line that is not read: too long to be one, or begun before
  ondemand::parser parser;

  /// Adds what the file has beyond the buffer; false where that is nothing.
  bool fill() {
    if (end - begin >= longest_line) {  // no record is that long: drop it up to its end
      drop(end - begin);
      damaged += skipping ? 0 : 1;
      skipping = true;
    }
    std::copy(buffer.begin() + static_cast<std::ptrdiff_t>(begin),
              buffer.begin() + static_cast<std::ptrdiff_t>(end),
              buffer.begin());
    end -= begin;
    begin = 0;
    buffer.resize(end + chunk_bytes + simdjson::SIMDJSON_PADDING);
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    ssize_t count = 0;
    do {
      count = pread(fd, buffer.data() + end, chunk_bytes, offset + static_cast<std::int64_t>(end));
    } while (count < 0 && errno == EINTR);
    close(fd);
    if (count <= 0) return false;
    end += static_cast<std::size_t>(count);
    return true;
  }

  void drop(std::size_t bytes) {
    begin += bytes;
    offset += static_cast<std::int64_t>(bytes);
  }

  /// The end of the first line in the buffer, from `from` on; null where it has none yet.
  char* line_end(std::size_t from) {
    if (from == end) return nullptr;  // an empty buffer has no memory to search
    return static_cast<char*>(std::memchr(buffer.data() + from, '\n', end - from));
  }
};

RecordReader::RecordReader(std::string path, std::int64_t from)
    : state_(std::make_unique<State>()) {
  state_->path = std::move(path);
  if (from <= 0) return;
  state_->offset = from - 1;  // the end of the line before, if one begins right there
  state_->skipping = true;
}
RecordReader::RecordReader(RecordReader&&) noexcept = default;
RecordReader& RecordReader::operator=(RecordReader&&) noexcept = default;
RecordReader::~RecordReader() = default;

std::optional<StepRecord> RecordReader::next() {
  State& s = *state_;
  std::size_t searched = s.begin;
  while (true) {
    char* stop = s.line_end(searched);
    if (stop == nullptr) {
      const std::size_t seen = s.end - s.begin;
      if (!s.fill()) {
        s.buffer = {};
        s.begin = s.end = 0;  // the half line is read again when there is more
        return std::nullopt;
      }
      searched = s.begin + std::min(seen, s.end - s.begin);
      continue;
    }
    const std::string_view line{s.buffer.data() + s.begin,
                                static_cast<std::size_t>(stop - s.buffer.data()) - s.begin};
    s.drop(line.size() + 1);
    searched = s.begin;
    if (s.skipping) {
      s.skipping = false;
      continue;
    }
    if (auto record = parse_padded(s.parser, line)) return record;
    ++s.damaged;
  }
}

std::int64_t RecordReader::damaged_lines() const {
  return state_->damaged;
}
std::int64_t RecordReader::offset() const {
  return state_->offset;
}
const std::string& RecordReader::path() const {
  return state_->path;
}

std::optional<StepRecord> parse_record(std::string_view line) {
  ondemand::parser parser;
  std::string padded{line};
  padded.resize(line.size() + simdjson::SIMDJSON_PADDING);
  return parse_padded(parser, {padded.data(), line.size()});
}

}  // namespace flopmeter
