// SPDX-License-Identifier: Apache-2.0
//
// The device of a trace, and its peaks.
#pragma once

#include <flopmeter/core/peak_table.h>
#include <flopmeter/trace/trace.h>

#include <cstdint>
#include <optional>
#include <string>

namespace flopmeter {

/// The name that all listed devices share, else that of the device with this index.  Empty if there
/// was no device work or no name, or if names differ and none has this index.
std::optional<std::string> device_name(const Trace& trace, std::optional<std::int32_t> index);

/// The catalog's peaks; empty if the device is not in it.
std::optional<PeakTable> known_peaks(const std::optional<std::string>& name);

}  // namespace flopmeter
