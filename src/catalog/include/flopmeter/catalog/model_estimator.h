// SPDX-License-Identifier: Apache-2.0
//
// The catalog's models behind the seam through which a step's shape is supported.
#pragma once

#include <flopmeter/catalog/model.h>
#include <flopmeter/catalog/cost_model.h>
#include <flopmeter/core/flop_estimator.h>
#include <flopmeter/core/result.h>

#include <memory>
#include <string>

namespace flopmeter {

/// Costs a step's shapes with `model`: real lengths under `convention`, padded ones for the
/// hardware.  All work is taken to be in `dtype`.
Result<std::unique_ptr<FlopEstimator>> make_estimator(Model model,
                                                      Training training,
                                                      const std::string& convention,
                                                      Dtype dtype);

}  // namespace flopmeter
