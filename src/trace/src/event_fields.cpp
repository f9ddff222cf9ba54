// SPDX-License-Identifier: Apache-2.0
#include "event_fields.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace flopmeter {
namespace {

using Field = std::string_view EventFields::*;

struct Key {
  std::string_view name;
  Field field;  ///< null for the arguments, each of which has a field
};

constexpr auto event_keys = std::to_array<Key>({{"ph", &EventFields::phase},
                                                {"cat", &EventFields::category},
                                                {"name", &EventFields::name},
                                                {"pid", &EventFields::pid},
                                                {"tid", &EventFields::tid},
                                                {"ts", &EventFields::start},
                                                {"dur", &EventFields::duration},
                                                {"args", nullptr}});

// torch 1.8 writes the first letter of some in lower case.
constexpr auto argument_keys = std::to_array<Key>({
    {"correlation", &EventFields::correlation},
    {"External id", &EventFields::external_id},
    {"external id", &EventFields::external_id},
    {"stream", &EventFields::stream},
    {"device", &EventFields::device},
    {"bytes", &EventFields::bytes},
    {"Sequence number", &EventFields::sequence},
    {"sequence number", &EventFields::sequence},
    {"Input Dims", &EventFields::dims},
    {"Input dims", &EventFields::dims},
    {"Input type", &EventFields::types},
    {"Concrete Inputs", &EventFields::concrete},
    {"Collective name", &EventFields::collective},
    {"In msg nelems", &EventFields::in_elements},
    {"Out msg nelems", &EventFields::out_elements},
    {"dtype", &EventFields::dtype},
    {"Group size", &EventFields::group_size},
    {"Process Group Name", &EventFields::group},
    {"Seq", &EventFields::collective_sequence},
});

/// Whether the bytes at two places are equal; they are read as one number.
template <class Number>
bool equal_at(const char* a, const char* b) {
  Number x{};
  Number y{};
  std::memcpy(&x, a, sizeof x);
  std::memcpy(&y, b, sizeof y);
  return x == y;
}

/// Whether two keys of the same length, at most 24, are equal.  A call of memcmp costs more.
[[gnu::always_inline]] inline bool equal(std::string_view a, std::string_view b) {
  const auto ends_equal = [&]<class Number>(Number) {
    const std::size_t rest = a.size() - sizeof(Number);
    return equal_at<Number>(a.data(), b.data()) &&
           equal_at<Number>(a.data() + rest, b.data() + rest);
  };
  if (a.size() > 16)
    return equal_at<std::uint64_t>(a.data() + 8, b.data() + 8) && ends_equal(std::uint64_t{});
  if (a.size() >= 8) return ends_equal(std::uint64_t{});
  if (a.size() >= 4) return ends_equal(std::uint32_t{});
  if (a.size() >= 2) return ends_equal(std::uint16_t{});
  return a.front() == b.front();
}

/// Keys by length: the length alone distinguishes most keys of an event.
template <std::size_t count>
class KeyTable {
 public:
  constexpr explicit KeyTable(const std::array<Key, count>& keys) : keys_(keys) {
    std::sort(keys_.begin(), keys_.end(), [](const Key& a, const Key& b) {
      return a.name.size() < b.name.size();
    });
    for (const Key& key : keys_) {
      for (std::size_t size = key.name.size() + 1; size < first_.size(); ++size) ++first_[size];
    }
  }
  /// Null if the table does not have it.
  [[nodiscard]] const Key* find(std::string_view name) const {
    if (name.empty() || name.size() + 1 >= first_.size()) return nullptr;
    for (std::size_t i = first_[name.size()]; i < first_[name.size() + 1]; ++i) {
      if (equal(keys_[i].name, name)) return &keys_[i];
    }
    return nullptr;
  }

 private:
  std::array<Key, count> keys_;
  std::array<std::uint8_t, 21> first_{};  // index of the first key that is as long as the index
};

constexpr KeyTable event_table{event_keys};
constexpr KeyTable argument_table{argument_keys};

bool read_arguments(JsonCursor& cursor, EventFields& fields) {
  if (cursor.peek() != '{') return cursor.skip_value();  // null
  cursor.take('{');
  if (cursor.take('}')) return true;
  do {
    std::string_view name;
    std::string_view unused;
    if (!cursor.key(name)) return false;
    const Key* const key = argument_table.find(name);
    if (!cursor.value(key != nullptr ? fields.*(key->field) : unused)) return false;
  } while (cursor.take(','));
  return cursor.take('}');
}

}  // namespace

bool read_event(JsonCursor& cursor, EventFields& fields) {
  if (!cursor.take('{')) return false;
  if (cursor.take('}')) return true;
  do {
    std::string_view name;
    if (!cursor.key(name)) return false;
    const Key* const key = event_table.find(name);
    if (key != nullptr && key->field == nullptr) {
      if (!read_arguments(cursor, fields)) return false;
      continue;
    }
    std::string_view unused;
    // Written in place: copying a view right after its creation stalls the processor.
    if (!cursor.value(key != nullptr ? fields.*(key->field) : unused)) return false;
    // Flows, counters, and metadata, half of all events, end here: nothing else of them is needed.
    if (!fields.phase.empty() && !is_complete_event(fields)) return cursor.skip_to_close(1);
    // So do Python functions, most events of a trace with stacks.
    if (key != nullptr && key->field == &EventFields::name &&
        fields.category == "python_function" && !fields.name.starts_with(module_prefix)) {
      return cursor.skip_to_close(1);
    }
  } while (cursor.take(','));
  return cursor.take('}');
}

bool is_event_start(std::string_view text, std::size_t at) {
  JsonCursor cursor{text, at};
  if (!cursor.take('{') || cursor.peek() != '"') return false;
  constexpr std::size_t longest_key = 8;
  JsonCursor key{text.substr(0, std::min(text.size(), cursor.position() + longest_key + 4)),
                 cursor.position()};
  std::string_view name;
  if (!key.key(name)) return false;
  return event_table.find(name) != nullptr || name == "id" || name == "s" || name == "bp";
}

std::size_t find_event(std::string_view text, std::size_t from) {
  for (std::size_t at = text.find('{', from); at != std::string_view::npos;
       at = text.find('{', at + 1)) {
    std::size_t before = at;
    while (before > 0 && (text[before - 1] == ' ' || text[before - 1] == '\n' ||
                          text[before - 1] == '\r' || text[before - 1] == '\t')) {
      --before;
    }
    const bool in_list = before > 0 && (text[before - 1] == ',' || text[before - 1] == '[');
    if (in_list && is_event_start(text, at)) return at;
  }
  return std::string_view::npos;
}

}  // namespace flopmeter
