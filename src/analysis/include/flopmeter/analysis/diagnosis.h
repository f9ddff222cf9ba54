// SPDX-License-Identifier: Apache-2.0
//
// Why is it low?  The waterfall of a window and what the rules find in it.
#pragma once

#include <flopmeter/core/finding.h>
#include <flopmeter/core/json_writer.h>
#include <flopmeter/analysis/waterfall.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

struct Diagnosis {
  Sums sums;
  Waterfall waterfall;
  std::vector<Finding> findings;  ///< largest first
};

/// An error where no MFU can be formed.
Result<Diagnosis> diagnose(const Evidence& evidence);

/// "good" over 50 %, "fair" over 20 %, "low" over 10 %, else "very low".
std::string_view verdict(double mfu);

/// What the run's devices cost, and what part of it was lost.
struct Price {
  double per_device_hour = 0;
  int devices = 1;  ///< of all ranks
};

/// The object that `flopmeter diagnose --json` prints.
void write_json(JsonWriter& json,
                const Diagnosis& diagnosis,
                const std::optional<Price>& price = std::nullopt);

/// One cause in two runs.
struct Change {
  Cause cause = Cause::unexplained;
  double before = 0;  ///< MFU points lost, 0–1
  double after = 0;
  double mfu_change = 0;  ///< before - after: what the cause did to MFU
};
/// All causes, largest change first; the changes sum to the difference of the MFUs.
std::vector<Change> compare(const Waterfall& before, const Waterfall& after);

}  // namespace flopmeter
