// SPDX-License-Identifier: Apache-2.0
//
// The kinds of output.  Each is one file in sinks/formats; to add one, add a file there.
#pragma once

#include <flopmeter/core/sink.h>
#include <flopmeter/core/step_fields.h>

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace flopmeter {

/// All kinds, by name.
std::span<const SinkPlugin* const> sink_plugins();

/// Makes the sink of "name" or "name:target".  An unknown name is an error that lists the nearest
/// names.  Files are opened with the first record, so an unwritable target is an error of the sink,
/// not of this call.
Result<std::unique_ptr<Sink>> make_sink(std::string_view specification, const RunContext& run);

/// A series of an output that is not a field of the record: over a log interval, all ranks, or the
/// run.
struct OutputSeries {
  std::string_view name;  ///< of the Prometheus metric or the TensorBoard tag
  Unit unit = Unit::none;
  std::string_view help;  ///< one phrase without a period
};

/// All of them, those of Prometheus first.
std::vector<OutputSeries> output_series();

}  // namespace flopmeter
