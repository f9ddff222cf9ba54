// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bindings.h"

#include <flopmeter/catalog/cost_model.h>

#include <optional>
#include <string>

namespace flopmeter {

/// Parses the properties of a training step that Python and the CLI share.
Training training_of(const std::string& trainable,
                     const std::string& recompute,
                     const std::string& attention,
                     bool forward_only,
                     std::optional<bool> mtp);

}  // namespace flopmeter
