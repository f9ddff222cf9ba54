// SPDX-License-Identifier: Apache-2.0
//
// FieldMeans: every numeric field of the field table, combined over steps as its kind states.
#pragma once

#include <flopmeter/core/step_fields.h>

#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Not thread-safe.
class FieldMeans {
 public:
  void add(const StepRecord& record) {
    const auto fields = step_fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].kind == FieldKind::text) continue;
      const auto value = as_number(fields[i].read(record));
      if (!value || !std::isfinite(*value)) continue;
      Sum& sum = sums_[i];
      if (fields[i].kind == FieldKind::gauge || fields[i].kind == FieldKind::total) {
        sum = {*value, 1};
        continue;
      }
      const double weight = fields[i].kind == FieldKind::ratio ? record.step_seconds.value : 1;
      if (!std::isfinite(weight)) continue;
      sum.amount += *value * weight;
      sum.weight += fields[i].kind == FieldKind::counter ? record.steps : weight;
    }
    steps_ += record.steps;
  }

  /// The newest value of a gauge or total, the mean of a ratio weighted by time, or the mean of a
  /// counter per step.  A member of a group that a step lacks counts as 0.
  [[nodiscard]] std::optional<double> mean(std::size_t field) const {
    const Field& row = step_fields()[field];
    const bool grouped = row.kind == FieldKind::counter && !row.group.empty();
    const double weight = grouped && sums_[field].weight > 0 ? steps_ : sums_[field].weight;
    return weight > 0 ? std::optional{sums_[field].amount / weight} : std::nullopt;
  }

  [[nodiscard]] std::optional<double> mean(std::string_view name) const {
    return mean(static_cast<std::size_t>(find_step_field(name) - step_fields().data()));
  }
  [[nodiscard]] int steps() const { return steps_; }
  void clear() { *this = {}; }

 private:
  struct Sum {
    double amount = 0;
    double weight = 0;
  };
  std::vector<Sum> sums_ = std::vector<Sum>(step_fields().size());
  int steps_ = 0;
};

}  // namespace flopmeter
