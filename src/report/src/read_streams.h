// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/step_record.h>
#include <flopmeter/runstore/run_directory.h>

#include <cstdint>
#include <functional>

namespace flopmeter {

/// Hands over every record of every rank, one file at a time.  What a restart did again counts as
/// it was done last.  Returns how many lines were damaged.
std::int64_t read_streams(const RunDirectory& run,
                          const std::function<void(const StepRecord&)>& take);

}  // namespace flopmeter
