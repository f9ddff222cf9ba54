// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/catalog/model_family.h>
#include <flopmeter/core/result.h>

#include <optional>
#include <string>

namespace flopmeter {

/// A model as the command line names it.
struct ModelArgument {
  Model model;
  std::optional<std::int64_t> positions;  ///< the longest sequence its configuration speaks of
};

/// A well-known name, a config.json, a folder that holds one, or "-" for standard input.
Result<ModelArgument> read_model(const std::string& text);

}  // namespace flopmeter
