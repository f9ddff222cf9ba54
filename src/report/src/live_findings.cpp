// SPDX-License-Identifier: Apache-2.0
#include "live_ranks.h"

#include <flopmeter/analysis/diagnosis.h>
#include <flopmeter/analysis/run_evidence.h>
#include <flopmeter/report/live_findings.h>
#include <flopmeter/runstore/profile_stream.h>

namespace flopmeter {

std::vector<Finding> live_findings(const RunFollower& follower) {
  if (follower.window().empty()) return {};
  Evidence evidence;
  evidence.steps = {follower.window().begin(), follower.window().end()};
  evidence.rank = follower.window().front().rank;
  evidence.peaks = follower.run().metadata.peaks;
  evidence.processors = follower.run().metadata.processors;
  evidence.profiles = read_profiles(follower.run(), follower.window().front().rank);
  if (follower.totals().ranks.size() > 1)
    evidence.ranks = compare_ranks(live_windows(follower.run().metadata, follower.totals().ranks),
                                   live_straggler_options);
  auto diagnosis = diagnose(evidence);
  return diagnosis ? diagnosis->findings : std::vector<Finding>{};
}

}  // namespace flopmeter
