// SPDX-License-Identifier: Apache-2.0
//
// Conversions between the members of a StepRecord and field values.
#pragma once

#include <flopmeter/core/static_text.h>
#include <flopmeter/core/step_fields.h>

#include <concepts>
#include <type_traits>

namespace flopmeter {

template <class Enum>
constexpr std::size_t count_of = 0;
template <>
constexpr std::size_t count_of<FlopsProvenance> = flops_provenance_count;
template <>
constexpr std::size_t count_of<StepTag> = step_tag_count;
template <>
constexpr std::size_t count_of<TimeSource> = time_source_count;
template <>
constexpr std::size_t count_of<AttentionPairs> = attention_pairs_count;

FieldValue to_value(std::integral auto value) {
  return static_cast<WideInt>(value);
}
inline FieldValue to_value(double value) {
  return value;
}
inline FieldValue to_value(Seconds value) {
  return value.value;
}
inline FieldValue to_value(Flops value) {
  return value.value;
}
inline FieldValue to_value(std::string_view text) {
  return text.empty() ? FieldValue{} : FieldValue{text};
}
template <class Enum>
requires std::is_enum_v<Enum> FieldValue to_value(Enum value) {
  return to_value(to_string(value));
}
inline FieldValue to_value(const FixedBatch& batch) {
  thread_local std::string text;
  text = to_text(batch);
  return to_value(std::string_view{text});
}
template <class T>
FieldValue to_value(const std::optional<T>& value) {
  return value ? to_value(*value) : FieldValue{};
}

/// Sets `target` if the value has its type and fits; returns whether it did.
bool from_value(const FieldValue& value, std::integral auto& target) {
  using Target = std::remove_reference_t<decltype(target)>;
  const auto* integer = std::get_if<WideInt>(&value);
  if (integer == nullptr || static_cast<Target>(*integer) != *integer) return false;
  target = static_cast<Target>(*integer);
  return true;
}
inline bool from_value(const FieldValue& value, double& target) {
  const auto number = as_number(value);
  if (number) target = *number;
  return number.has_value();
}
inline bool from_value(const FieldValue& value, Seconds& target) {
  return from_value(value, target.value);
}
inline bool from_value(const FieldValue& value, Flops& target) {
  const auto* integer = std::get_if<WideInt>(&value);
  if (integer != nullptr) target.value = *integer;
  return integer != nullptr;
}
inline bool from_value(const FieldValue& value, std::string_view& target) {
  const auto* text = std::get_if<std::string_view>(&value);
  if (text != nullptr) target = static_text(*text);
  return text != nullptr;
}
template <class Enum>
requires std::is_enum_v<Enum>
bool from_value(const FieldValue& value, Enum& target) {
  const auto* name = std::get_if<std::string_view>(&value);
  if (name == nullptr) return false;
  for (std::size_t i = 0; i < count_of<Enum>; ++i) {
    if (*name != to_string(static_cast<Enum>(i))) continue;
    target = static_cast<Enum>(i);
    return true;
  }
  return false;
}
inline bool from_value(const FieldValue& value, FixedBatch& target) {
  const auto* text = std::get_if<std::string_view>(&value);
  const auto batch = text != nullptr ? parse_batch(*text) : std::nullopt;
  if (batch) target = *batch;
  return batch.has_value();
}
template <class T>
bool from_value(const FieldValue& value, std::optional<T>& target) {
  T content{};
  const bool known = from_value(value, content);
  target = known ? std::optional<T>{content} : std::nullopt;
  return known;
}

}  // namespace flopmeter
