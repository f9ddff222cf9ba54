// SPDX-License-Identifier: Apache-2.0
//
// Sink: the interface of every output format.
#pragma once

#include <flopmeter/core/finding.h>
#include <flopmeter/core/result.h>
#include <flopmeter/core/run_metadata.h>
#include <flopmeter/core/step_record.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// The run as the sinks of one process see it.
struct RunContext {
  RunMetadata metadata;
  std::string directory;
  int rank = 0;
  int local_rank = 0;
  std::string host;         ///< empty: unknown
  std::optional<int> role;  ///< set if only ranks of the same role can be compared
  bool equal_ranks = true;  ///< all ranks do the same work: totals scale with the world size
  std::int64_t disk_limit_bytes = std::int64_t{256} << 20U;  ///< of each growing file
  bool breakdown = false;                                    ///< show phases
  bool first_row = false;                                    ///< also a row for the first step
  bool memory = true;                                        ///< show memory
  bool zero_unmeasured = false;  ///< write 0 for an unknown MFU, for readers that need a number

  [[nodiscard]] int world_size() const { return metadata.world_size.value_or(1); }
  [[nodiscard]] int data_parallel() const { return metadata.data_parallel.value_or(1); }
  [[nodiscard]] int log_interval() const { return metadata.log_interval.value_or(10); }
};

/// Receives finished steps.  Called from one thread at a time.  Reports failure by its result; the
/// caller also catches exceptions, so that no sink can end a training run.
class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  Sink(Sink&&) = delete;
  Sink& operator=(Sink&&) = delete;
  virtual ~Sink() = default;

  virtual Result<void> write(const StepRecord& record) = 0;
  virtual Result<void> flush() { return {}; }
  /// The causes of lost MFU changed; largest first, empty if there are none.
  virtual Result<void> found(const std::vector<Finding>& findings) {
    (void)findings;
    return {};
  }
  /// The last call: the run is over.
  virtual Result<void> finish(const std::vector<Finding>& findings) {
    (void)findings;
    return flush();
  }
};

/// How a kind of sink is named, described, and made.
struct SinkPlugin {
  std::string_view name;  ///< the part before the colon in `--sink name:target`
  std::string_view help;
  Result<std::unique_ptr<Sink>> (*make)(const RunContext& run, std::string_view target) = nullptr;
};

}  // namespace flopmeter
