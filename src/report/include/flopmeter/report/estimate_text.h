// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/catalog/estimate.h>

#include <string>

namespace flopmeter {

/// An estimate for people: what it is, where the FLOPs are, and what they mean on the device.
std::string estimate_text(const Estimate& estimate);

}  // namespace flopmeter
