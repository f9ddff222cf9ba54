// SPDX-License-Identifier: Apache-2.0
//
// The field table: one row per field of a StepRecord.  JSONL, CSV, the summary, Prometheus,
// TensorBoard, the documentation, and the record reader all walk it, so a new field is one member
// of StepRecord, one row in step_fields.cpp, and the code that sets it.
#pragma once

#include <flopmeter/core/step_record.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace flopmeter {

enum class Unit : std::uint8_t {
  none,
  count,
  seconds,
  unix_time,
  flops,
  teraflops_per_second,
  per_second,
  ratio,
  bytes,
  watts,
  hertz,
};
std::string_view to_string(Unit unit);

/// How values of a field combine over steps.
enum class FieldKind : std::uint8_t {
  text,     ///< does not combine
  gauge,    ///< the newest value holds
  ratio,    ///< a quotient over time, such as mfu or tokens_per_second: averaged by step time
  counter,  ///< an amount of one step, such as tokens: sums over steps
  total,    ///< a sum so far, such as dropped_records: the newest value holds
};
std::string_view to_string(FieldKind kind);

/// A value for outputs; monostate if it was not measured.  Text stays valid until the field
/// is read again on the same thread.
using FieldValue = std::variant<std::monostate, WideInt, double, std::string_view>;

/// Describes one value of a record.
struct Field {
  std::string_view group;  ///< empty, or the object that contains it ("phases")
  std::string_view name;   ///< snake_case, the same in every output; unique within the group
  Unit unit = Unit::none;
  FieldKind kind = FieldKind::gauge;
  std::string_view help;  ///< one phrase without a period
  /// Series name, with a label if several fields share it:
  /// `flopmeter_phase_seconds_total{phase="data"}`. Counters are summed over train steps.  Empty:
  /// not exported.
  std::string_view prometheus;
  std::string_view tensorboard;  ///< tag; empty: not shown
  FieldValue (*read)(const StepRecord&) = nullptr;
  /// Stores a value that was read from a file; false if it has the wrong type.  Null for a field
  /// that is derived from others.
  bool (*set)(StepRecord&, const FieldValue&) = nullptr;
};

/// All fields, in the order in which sinks write them.
std::span<const Field> step_fields();

/// "name" or "group.name".
std::string full_name(const Field& field);

/// The field with this full name, or null.
const Field* find_step_field(std::string_view name);

/// Adds the train step `next` to `into`: counters sum, ratios are weighted by time, and of the rest
/// the newest value holds.  Returns false and changes nothing if the two differ in a text, such as
/// the batch, or in which values are known.
bool merge(StepRecord& into, const StepRecord& next);

/// The value as a double if it is a number.
std::optional<double> as_number(const FieldValue& value);

}  // namespace flopmeter
