// SPDX-License-Identifier: Apache-2.0
//
// The diagnosis of a run that recorded a step with the PyTorch profiler.
#pragma once

#include <flopmeter/analysis/diagnosis.h>
#include <flopmeter/analysis/run_evidence.h>
#include <flopmeter/runstore/run_directory.h>
#include <flopmeter/trace/run_trace.h>

#include <optional>

namespace flopmeter {

/// Adds the operator profile of the recorded step, if any, to the evidence, and to the diagnosis
/// the findings that only a trace can prove.
Result<Diagnosis> diagnose(Evidence& evidence, const std::optional<DeviceReport>& recorded);

/// The diagnosis of a stored run, as every command shows it.
Result<Diagnosis> diagnose_run(const RunDirectory& run, const EvidenceOptions& options = {});

}  // namespace flopmeter
