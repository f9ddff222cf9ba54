// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/json_writer.h>

#include <optional>
#include <string>

namespace flopmeter {

/// One thing that costs MFU or makes a number doubtful, with the evidence and what to do about it.
struct Finding {
  std::string rule;                    ///< named after the cause: "data_loading"
  std::string summary;                 ///< one sentence
  std::string evidence;                ///< the numbers behind it
  std::string recommendation;                  ///< which setting, which value to try
  std::optional<double> mfu_points;    ///< MFU lost to it, 0–1
  std::optional<double> expected_mfu;  ///< MFU after the recommendation, 0–1
  std::optional<double> confidence;    ///< 0–1
  std::optional<int> rank;             ///< where it concerns one rank
};

void write_json(JsonWriter& json, const Finding& finding);

}  // namespace flopmeter
