// SPDX-License-Identifier: Apache-2.0
//
// Inflates gzip data of one or more members.
#pragma once

#include "input_file.h"

namespace flopmeter {

/// `damaged` is set if the data ends early or is corrupt.
Result<InputFile> inflate_gzip(std::string_view data);

}  // namespace flopmeter
