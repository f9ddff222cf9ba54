// SPDX-License-Identifier: Apache-2.0
//
// The run of a monitor, from its options and connections.
#pragma once

#include <flopmeter/core/sink.h>
#include <flopmeter/monitor/monitor.h>

#include <string>
#include <vector>

namespace flopmeter {

/// Options override the launcher.
Connections with_options(const Options& options, Connections connections);

/// The run that starts now, at `now_unix`.
RunContext describe_run(const Options& options,
                        const Connections& connections,
                        std::string_view convention,
                        double now_unix);

/// The sinks that the options name, each as "name" or "name:target".
std::vector<std::string> sink_specifications(const Options& options, const RunContext& run);

}  // namespace flopmeter
