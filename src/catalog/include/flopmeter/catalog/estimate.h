// SPDX-License-Identifier: Apache-2.0
//
// estimate(): FLOPs, parameters, ideal step time, and utilization of a model for a batch and a
// convention, as `flopmeter estimate` prints them.
#pragma once

#include <flopmeter/catalog/convention.h>
#include <flopmeter/catalog/published.h>
#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/peak_table.h>
#include <flopmeter/core/result.h>

#include <optional>
#include <string>
#include <vector>

namespace flopmeter {

struct EstimateRequest {
  Batch batch;
  Training training;
  std::string convention = "model-v1";
  Dtype dtype = Dtype::bf16;
  std::optional<PeakTable> peaks;  ///< empty: no device
  std::int64_t devices = 1;
  std::optional<Seconds> step_seconds;
  std::optional<double> tokens_per_second;  ///< of all devices; alternative to step_seconds
  std::optional<double> train_tokens;       ///< of the whole training
  std::optional<double> planned_mfu;        ///< if no time is measured
};

struct Rates {
  std::optional<Seconds> step_seconds;
  std::optional<double> tokens_per_second;
  std::optional<double> tflops_per_device;
  std::optional<double> mfu;
  std::optional<double> hfu;
  std::optional<Seconds> ideal_step_seconds;  ///< all devices at peak
};

/// A whole training.
struct TrainingPlan {
  double tokens = 0;
  double model_flops = 0;
  std::optional<double> mfu;       ///< measured or expected
  std::optional<Seconds> ideal;    ///< all devices at peak
  std::optional<Seconds> seconds;  ///< at the measured or expected MFU
  std::optional<Seconds> device_seconds;
};

struct Estimate {
  std::string model;
  std::string family;
  ParameterCounts parameters;
  WideInt sequences = 0;
  WideInt tokens = 0;
  WideInt visual_tokens = 0;
  WideInt causal_pairs = 0;  ///< causal pairs of one head of one layer, over all sequences
  std::string convention;
  Breakdown parts;
  Flops forward;
  Flops backward;
  Flops model_flops;
  Flops recompute;
  Flops hardware_flops;
  Dtype dtype = Dtype::bf16;
  std::int64_t devices = 1;
  std::optional<PeakTable> peaks;
  Rates rates;
  std::optional<TrainingPlan> plan;
  std::vector<std::string> notes;
  std::optional<PublishedComparison> published;  ///< see add_published()
};

/// Empty batches, excessive sizes, and contradicting options are errors.
Result<Estimate> estimate(const Model& model, const EstimateRequest& request);

/// Compares with published results, if the estimate is of training on a known device.
void add_published(Estimate& estimate, const Model& model, const EstimateRequest& request);

/// Writes the object of `estimate --json`.
void write_json(JsonWriter& json, const Estimate& estimate);

}  // namespace flopmeter
