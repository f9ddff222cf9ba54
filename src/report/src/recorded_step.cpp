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

}  // namespace flopmeter
