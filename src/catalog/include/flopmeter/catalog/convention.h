// SPDX-License-Identifier: Apache-2.0
//
// Conventions: what counts as a model's FLOPs.  Everyone who publishes MFU has one; each preset
// reproduces one, and every record names the one it was made under.  To add one, add a file to
// catalog/conventions.
#pragma once

#include <flopmeter/catalog/cost_model.h>
#include <flopmeter/core/result.h>

#include <span>
#include <string_view>

namespace flopmeter {

/// One step under a convention.
struct Counted {
  Breakdown parts;                ///< forward and backward: the model's FLOPs
  std::optional<Flops> hardware;  ///< where the convention has its own idea of executed FLOPs
};

struct Convention {
  std::string_view name;
  std::string_view help;
  std::string_view source;
  /// `model` has a list of operations or, for a bare one, parameters only.
  Counted (*count)(const Model& model, const Batch& batch, const Training& training) = nullptr;
  bool needs_operations = true;  ///< false: parameters are enough
};

std::span<const Convention* const> conventions();
const Convention* find_convention(std::string_view name);
/// The same, with an error that suggests near names.
Result<const Convention*> convention_called(std::string_view name);

}  // namespace flopmeter
