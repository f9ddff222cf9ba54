// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace flopmeter {

class JsonWriter;

/// Time of a cause that a recommendation saves.
struct Saving {
  std::string cause;
  double seconds = 0;
};

/// One thing that costs time or makes a number doubtful, with the evidence, what to do about it,
/// and its effect.  Times cover all train steps that were analyzed.
struct Finding {
  std::string rule;                  ///< "data_loading"
  std::string summary;               ///< one sentence
  std::string evidence;              ///< the numbers behind it
  std::string recommendation;        ///< which setting, which value to try
  std::optional<double> share;       ///< of the time that the recommendation saves, 0 to 1
  std::optional<double> seconds;     ///< that it saves
  std::optional<double> speedup;     ///< time now divided by time after the fix
  std::optional<double> mfu_then;    ///< MFU after the fix, of the peak named by `peak`
  std::string peak;                  ///< dtype of that peak: "bf16"; empty if it is not known
  std::optional<double> confidence;  ///< 0 to 1
  std::optional<int> rank;           ///< if it concerns one rank
  std::vector<Saving> savings;       ///< `seconds` by cause of the time budget
  double useful_factor = 1;          ///< useful time after the fix divided by useful time now
};

void write_json(JsonWriter& json, const Finding& finding);

/// "optimizer, saves 25.6 %: the optimizer takes 11.9 ms of 34.8 ms per step (34.1 %)".
std::string headline(const Finding& finding);

}  // namespace flopmeter
