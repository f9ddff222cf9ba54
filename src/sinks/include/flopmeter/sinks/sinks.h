// SPDX-License-Identifier: Apache-2.0
//
// The kinds of output.  Each is one file in sinks/formats; dropping a file there is all it takes to
// add one.
#pragma once

#include <flopmeter/core/sink.h>

#include <memory>
#include <span>
#include <string_view>

namespace flopmeter {

/// All kinds, by name.
std::span<const SinkPlugin* const> sink_plugins();

/// "name" or "name:target" made ready.  A name nobody knows is an error that lists the nearest;
/// files are opened with the first record, so that an unwritable target is the sink's trouble and
/// never the caller's.
Result<std::unique_ptr<Sink>> make_sink(std::string_view specification, const RunInfo& run);

}  // namespace flopmeter
