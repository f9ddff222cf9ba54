// SPDX-License-Identifier: Apache-2.0
//
// RunMetadata: the properties of a run as a whole.  The monitor fills it, sinks use it, run.json
// stores it (runstore/run_metadata_json.h), and the analysis reads it back.
#pragma once

#include <flopmeter/core/dtype.h>
#include <flopmeter/core/peak_table.h>

#include <cstdint>
#include <optional>
#include <string>

namespace flopmeter {

/// The model as an estimator needs it: enough to recount a stored run under another convention.
/// Unknown text is empty.
struct ModelSource {
  std::string name;       ///< of a model in the catalog
  std::string config;     ///< or its configuration, a JSON object
  std::string family;     ///< in the catalog
  std::string trainable;  ///< which parameters are trained, as `--trainable` takes it
  std::string recompute;  ///< none, selective, or full
  std::string attention;  ///< fused or eager
  std::optional<bool>
      mtp;  ///< whether multi-token prediction runs; empty: as the convention defines it
  std::optional<Dtype> dtype;
  std::optional<std::int64_t> parameters;

  /// Whether the model can be built again.
  [[nodiscard]] bool known() const { return !name.empty() || !config.empty(); }
};

/// Unknown text and numbers are empty.
struct RunMetadata {
  std::string run_id;  ///< shared by all ranks and all starts of the run
  std::string stamp;   ///< YYYYmmdd_HHMMSS of the start
  std::string model;
  std::string convention;
  std::string mode;
  PeakTable peaks;
  std::optional<int> world_size;
  std::optional<int> data_parallel;  ///< ranks that process different samples
  std::optional<int> tensor_parallel;
  std::optional<int> pipeline_parallel;
  std::optional<int> pipeline_stride;  ///< from a rank to the rank with the next layers
  std::optional<int> context_parallel;
  std::optional<int> expert_parallel;
  std::optional<int> devices_per_rank;
  std::optional<int> processors;  ///< available to rank 0
  std::optional<int> log_interval;
  std::optional<std::int64_t> total_steps;  ///< number of the last step that the run plans
  ModelSource model_source;

  /// Ranks of one role hold the same layers, so their times can be compared.
  [[nodiscard]] int role(int rank) const;
};

}  // namespace flopmeter
