// SPDX-License-Identifier: Apache-2.0
//
// Straggler detection. Ranks do different work (packed batches, experts), so they are compared by
// FLOPs per second outside collectives, and by their arrival at collectives: the rank that arrives
// last waits least, which needs no common clock.
#pragma once

#include <flopmeter/analysis/rank_windows.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

enum class Verdict : std::uint8_t {
  normal,
  late,     ///< arrives last at collectives, but computes as fast as the others: it has more work
  slow,     ///< does less work per second than the others
  behind,   ///< has stopped or fallen behind the others' steps
  missing,  ///< never wrote a record
};
std::string_view to_string(Verdict verdict);

/// One rank compared with the others.
struct RankScore {
  int rank = 0;
  Verdict verdict = Verdict::normal;
  std::optional<double> relative{};    ///< speed over the median of the ranks, last windows
  std::optional<double> historical{};  ///< speed over its own median before that
  std::optional<double> lead{};        ///< seconds per step that it waits less than the median rank
  int slow_windows = 0;                ///< of the last `of_windows`
  int late_windows = 0;
};

struct StragglerOptions {
  double floor = 0.10;    ///< least deviation from the median that counts, as a share of it
  double deviations = 3;  ///< and in standard deviations, as the MAD gives them, from 5 ranks on
  int windows = 2;        ///< that must show it
  int of_windows = 3;     ///< of the newest ones
};

struct StragglerReport {
  std::vector<RankScore> ranks;              ///< in the order given
  std::vector<std::string> missing_signals;  ///< what was not known, and what follows
};

/// Classifies ranks that wrote records: normal, late, or slow. A rank with a missing signal is not
/// classified.
StragglerReport find_stragglers(std::span<const RankWindows> ranks,
                                const StragglerOptions& options = {});

}  // namespace flopmeter
