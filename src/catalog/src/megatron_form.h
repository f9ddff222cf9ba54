// SPDX-License-Identifier: Apache-2.0
//
// Closed form of Megatron's num_floating_point_operations(), for its conventions.  Private to the
// catalog.
#pragma once

#include <flopmeter/catalog/convention.h>

namespace flopmeter {

enum class MegatronWindows : std::uint8_t {
  ignored,  ///< every layer counts as full causal attention
  exact,
};

Counted megatron_form(const Model& model,
                      const Batch& batch,
                      const Training& training,
                      MegatronWindows windows);

}  // namespace flopmeter
