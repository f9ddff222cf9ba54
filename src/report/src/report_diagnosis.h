// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/analysis/diagnosis.h>
#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/op_profile.h>
#include <flopmeter/core/step_timeline.h>

#include <optional>
#include <vector>

namespace flopmeter {

/// "budget", "findings", what-ifs of the findings, or the reason why they are missing.
void write_diagnosis(JsonWriter& json, const Result<Diagnosis>& diagnosis);

/// "profile": the operations of the latest profiled step, null if there is none.  `device_times`:
/// the times of work on a device are those of its kernels.
void write_op_profile(JsonWriter& json,
                      const std::vector<OpProfile>& profiles,
                      bool device_times = false);

/// "step_timeline": that of a trace, else of the latest profiled step; null if there is none.
void write_step_timeline(JsonWriter& json,
                         const std::optional<StepTimeline>& recorded,
                         const std::vector<OpProfile>& profiles);

}  // namespace flopmeter
