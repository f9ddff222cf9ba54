// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/step_fields.h>

#include <algorithm>
#include <string>

namespace flopmeter {
namespace {

bool is_known(const FieldValue& value) {
  return !std::holds_alternative<std::monostate>(value);
}

bool has_equal_text(const Field& field, const StepRecord& a, const StepRecord& b) {
  const FieldValue first = field.read(a);
  if (!is_known(first)) return !is_known(field.read(b));
  const std::string text{std::get<std::string_view>(first)};  // the next read invalidates the view
  return field.read(b) == FieldValue{std::string_view{text}};
}

/// Whether the two can be summed: the same kind of work, and the same values are known.
bool can_merge(const StepRecord& a, const StepRecord& b) {
  if (a.tag != StepTag::train || a.rank != b.rank || a.devices != b.devices ||
      a.micro_batches != b.micro_batches || a.epoch != b.epoch)
    return false;
  const auto fields = step_fields();
  return std::all_of(fields.begin(), fields.end(), [&](const Field& field) {
    return field.kind == FieldKind::text ? has_equal_text(field, a, b)
                                         : is_known(field.read(a)) == is_known(field.read(b));
  });
}

FieldValue sum(const FieldValue& a, const FieldValue& b) {
  const auto* first = std::get_if<WideInt>(&a);
  const auto* second = std::get_if<WideInt>(&b);
  if (first != nullptr && second != nullptr) return *first + *second;
  return *as_number(a) + *as_number(b);
}

}  // namespace

bool merge(StepRecord& into, const StepRecord& next) {
  if (!can_merge(into, next)) return false;
  const double before = into.step_seconds.value;
  const double all = before + next.step_seconds.value;
  const double share = all > 0 ? before / all : 0;
  for (const Field& field : step_fields()) {
    if (field.kind == FieldKind::text || field.set == nullptr) continue;
    const FieldValue value = field.read(next);
    if (!is_known(value)) continue;
    if (field.kind == FieldKind::counter) {
      field.set(into, sum(field.read(into), value));
    } else if (field.kind == FieldKind::ratio) {
      field.set(into, share * *as_number(field.read(into)) + (1 - share) * *as_number(value));
    } else {
      field.set(into, value);
    }
  }
  return true;
}

}  // namespace flopmeter
