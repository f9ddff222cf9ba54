// SPDX-License-Identifier: Apache-2.0
//
// Sink: the seam behind which every output format lives.
#pragma once

#include <flopmeter/core/finding.h>
#include <flopmeter/core/peak_table.h>
#include <flopmeter/core/result.h>
#include <flopmeter/core/step_record.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// What a sink is told once, before the first record.
struct RunInfo {
  std::string directory;
  std::string run_id;  ///< shared by all ranks of a run
  std::string stamp;   ///< YYYYmmdd_HHMMSS of this start
  std::string model;
  std::string convention;
  PeakTable peaks;
  int rank = 0;
  int world_size = 1;
  int data_parallel =
      1;  ///< ranks that work on different samples; totals of samples and tokens scale with it
  bool equal_ranks = true;  ///< the layout gives all ranks the same work: one's count tells all
  std::optional<int> role;  ///< where not all ranks can be compared: those that this one can
  int local_rank = 0;
  std::string host;  ///< empty: not known
  int log_interval = 10;
  std::int64_t disk_limit_bytes = std::int64_t{256} << 20U;  ///< of each growing file
  bool breakdown = false;                                    ///< show phases
  bool memory = true;                                        ///< show memory
  bool zero_unmeasured =
      false;  ///< write 0 where MFU was not measured, for readers that expect a number
};

/// Receives finished steps.  Called from one thread at a time.  Reports failure by its result;
/// whoever drives it catches what still escapes, so that no sink can end a training run.
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
  /// What is known to cost MFU has changed; largest first, empty where nothing does any more.
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

/// How a kind of sink is named, described and made.
struct SinkPlugin {
  std::string_view name;  ///< the part before the colon in `--sink name:target`
  std::string_view help;
  Result<std::unique_ptr<Sink>> (*make)(const RunInfo& run, std::string_view target) = nullptr;
};

}  // namespace flopmeter
