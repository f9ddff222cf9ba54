// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/catalog/model_family.h>
#include <flopmeter/core/result.h>

#include <optional>
#include <string>

namespace flopmeter {

/// A model on the command line.
struct ModelArgument {
  Model model;
  std::optional<std::int64_t> positions;  ///< maximum sequence length of its configuration
};

/// Reads a known name, a config.json, a folder with one, or "-" for standard input.
Result<ModelArgument> read_model(const std::string& text);

}  // namespace flopmeter
