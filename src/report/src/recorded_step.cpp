// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/report/recorded_step.h>

namespace flopmeter {

Result<Diagnosis> diagnose(Evidence& evidence, const std::optional<DeviceReport>& recorded) {
  if (!recorded) return diagnose(evidence);
  evidence.profiles.insert(
      evidence.profiles.end(), recorded->profiles.begin(), recorded->profiles.end());
  auto diagnosis = diagnose(evidence);
  if (diagnosis) add_findings((*diagnosis).findings, recorded->findings);
  return diagnosis;
}

Result<Diagnosis> diagnose_run(const RunDirectory& run, const EvidenceOptions& options) {
  const std::vector<int> ranks = run.ranks();
  if (ranks.empty())
    return Error{ErrorCode::not_found,
                 run.path + ": no records; is it the run directory of a monitor?"};
  Evidence evidence = read_evidence(run, options);
  auto diagnosis = diagnose(evidence, read_run_trace(run, options.rank.value_or(ranks.front())));
  if (!diagnosis) return Error{diagnosis.error().code, run.path + ": " + diagnosis.error().message};
  return diagnosis;
}

}  // namespace flopmeter
