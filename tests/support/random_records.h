// SPDX-License-Identifier: Apache-2.0
//
// Random records for tests.
#pragma once

#include "files.h"

#include <flopmeter/core/static_text.h>
#include <flopmeter/core/step_fields.h>

#include <random>
#include <string>

namespace flopmeter {

/// Sets the readable fields of a record to random values; about a third stay empty.
class RandomRecords {
 public:
  explicit RandomRecords(unsigned seed) : random_(seed) {}

  StepRecord next() {
    StepRecord record;
    for (const Field& field : step_fields()) {
      if (field.set == nullptr || draw(3) == 0) continue;
      // Try text first, because a field does not expose its type.
      if (field.set(record, FieldValue{text_for(field)})) continue;
      const bool whole =
          field.unit == Unit::count || field.unit == Unit::bytes || field.unit == Unit::flops;
      field.set(record, whole ? FieldValue{whole_for(field)} : FieldValue{real_for(field)});
    }
    return record;
  }

 private:
  unsigned draw(unsigned below) { return static_cast<unsigned>(random_() % below); }
  std::string_view text_for(const Field& field) {
    if (field.name == "tag") return to_string(static_cast<StepTag>(draw(step_tag_count)));
    if (field.name == "flops_source")
      return to_string(static_cast<FlopsProvenance>(draw(flops_provenance_count)));
    if (field.name == "attention_pairs") return to_string(static_cast<AttentionPairs>(draw(4)));
    if (field.name == "time_source") return to_string(static_cast<TimeSource>(1 + draw(2)));
    if (field.name == "batch")
      return draw(2) == 0 ? "1x8" : "4x2048,1x17 padded=2048 images=1x24x24";
    constexpr std::array<std::string_view, 4> texts{
        "model-v1", "a \"quoted\"\n\tline", "é\x01<", "x"};
    return texts[draw(4)];
  }
  WideInt whole_for(const Field& field) {
    const auto bits = static_cast<WideInt>(random_());
    if (field.group.ends_with("flops_by_dtype")) return bits + 1;
    if (field.name == "steps") return 1 + draw(100);
    if (field.unit == Unit::flops) return draw(2) == 0 ? bits * 1'000'003 : bits;
    return bits >> (field.unit == Unit::bytes ? 5U : 34U);
  }
  /// Small and positive if it has a unit, so that a reader does not take the record for damaged.
  double real_for(const Field& field) {
    const double fraction = real_(random_);
    const int exponent = exponent_(random_);
    return field.unit == Unit::none ? std::ldexp(fraction, exponent)
                                    : std::ldexp(std::abs(fraction), std::min(exponent, 18));
  }

  std::mt19937_64 random_;
  std::uniform_real_distribution<double> real_{-1, 1};
  std::uniform_int_distribution<int> exponent_{-60, 80};
};

}  // namespace flopmeter
