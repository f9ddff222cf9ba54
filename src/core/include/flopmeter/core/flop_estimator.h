// SPDX-License-Identifier: Apache-2.0
//
// FlopEstimator: the interface that gives the FLOPs of a batch from the configuration of the model,
// without counting.
#pragma once

#include <flopmeter/core/batch.h>
#include <flopmeter/core/dtype.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace flopmeter {

/// FLOPs of one training step by compute dtype.
struct FlopEstimate {
  std::array<std::uint64_t, dtype_count> model{};     ///< numerator of MFU
  std::array<std::uint64_t, dtype_count> hardware{};  ///< numerator of HFU
  std::uint64_t recompute = 0;                        ///< part of hardware
  /// Exact count with padding and all attention pairs, masked ones too; 0: not known.
  std::uint64_t executed = 0;
  std::uint64_t lm_head = 0;       ///< part of hardware that only one stage of a pipeline does
  std::int64_t visual_tokens = 0;  ///< of the images of the batch; not divided among ranks
};

/// The part of one rank in the FLOPs of a batch: ranks beyond `data_parallel` share the batch
/// evenly. The parts of all ranks sum to the whole exactly.
FlopEstimate share_of(const FlopEstimate& batch, int world_size, int data_parallel, int rank);

/// Called from one thread, which is not the training thread; may allocate.
class FlopEstimator {
 public:
  FlopEstimator() = default;
  FlopEstimator(const FlopEstimator&) = delete;
  FlopEstimator& operator=(const FlopEstimator&) = delete;
  FlopEstimator(FlopEstimator&&) = delete;
  FlopEstimator& operator=(FlopEstimator&&) = delete;
  virtual ~FlopEstimator() = default;

  /// Empty if the batch does not determine the FLOPs.
  [[nodiscard]] virtual std::optional<FlopEstimate> estimate(const Batch& batch) const = 0;
  /// The convention of the FLOPs; static text.
  [[nodiscard]] virtual std::string_view convention() const = 0;
};

}  // namespace flopmeter
