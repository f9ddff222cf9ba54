// SPDX-License-Identifier: Apache-2.0
//
// The run directory on a command line.
#pragma once

#include <flopmeter/runstore/run_directory.h>

#include <string>

namespace flopmeter {

/// Opens the directory; prints a line about what cannot be read.
Result<RunDirectory> run_argument(const std::string& directory);

}  // namespace flopmeter
