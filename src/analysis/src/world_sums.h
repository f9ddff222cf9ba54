// SPDX-License-Identifier: Apache-2.0
//
// Sums over ranks, step by step.
#pragma once

#include <flopmeter/analysis/merge.h>

#include <unordered_map>

namespace flopmeter {

/// Takes the records of all ranks in any order.
class WorldSums {
 public:
  void add(const StepRecord& record, int rank);

  [[nodiscard]] std::vector<WorldStep> steps() const;
  [[nodiscard]] WorldTotals totals() const;
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  /// A count that some ranks may not know.
  struct Sum {
    WideInt value = 0;
    std::int32_t ranks = 0;

    void add(WideInt amount) {
      value += amount;
      ++ranks;
    }
  };
  struct Step {
    std::int32_t ranks = 0;
    std::int32_t world_size = 1;
    double time_unix = 0;  ///< of one of them
    std::int32_t data_parallel = 1;
    Sum model, hardware, tokens, samples;
    Spread seconds;
    Spread mfu;

    [[nodiscard]] bool complete() const { return ranks >= world_size; }
    /// Of the ranks that wrote the step, where they all know.
    [[nodiscard]] std::optional<Flops> reported(const Sum& sum) const {
      return sum.ranks == ranks ? std::optional{Flops{sum.value}} : std::nullopt;
    }
    [[nodiscard]] std::optional<Flops> flops(const Sum& sum) const {
      return complete() ? reported(sum) : std::nullopt;
    }
    [[nodiscard]] std::optional<std::int64_t> each_once(const Sum& sum) const;
  };

  std::unordered_map<std::int64_t, Step> steps_;
  std::int64_t excluded_ = 0;
};

}  // namespace flopmeter
