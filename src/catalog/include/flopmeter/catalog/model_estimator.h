// SPDX-License-Identifier: Apache-2.0
//
// FlopEstimator of a catalog model.
#pragma once

#include <flopmeter/catalog/cost_model.h>
#include <flopmeter/catalog/model.h>
#include <flopmeter/core/flop_estimator.h>
#include <flopmeter/core/result.h>

#include <memory>
#include <string>

namespace flopmeter {

/// Estimates the FLOPs of a batch shape: real lengths under `convention`, padded lengths for the
/// hardware.  All work is in `dtype`; with fp8 and fp4, attention, router, and LM head are in bf16.
Result<std::unique_ptr<FlopEstimator>> make_estimator(Model model,
                                                      Training training,
                                                      const std::string& convention,
                                                      Dtype dtype);

}  // namespace flopmeter
