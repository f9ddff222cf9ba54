// SPDX-License-Identifier: Apache-2.0
//
// RunLayout: the names of all files of a run.
#pragma once

#include <flopmeter/core/sink.h>

#include <optional>
#include <string>
#include <string_view>

namespace flopmeter {

/// The files that one rank writes in one start of a run.
class RunLayout {
 public:
  RunLayout(std::string directory, std::string stamp, int rank)
      : directory_(std::move(directory)), stamp_(std::move(stamp)), rank_(rank) {}
  explicit RunLayout(const RunContext& run)
      : RunLayout(run.directory, run.metadata.stamp, run.rank) {}

  static constexpr std::string_view metadata_name = "run.json";
  [[nodiscard]] static std::string metadata_in(const std::string& directory) {
    return directory + "/" + std::string{metadata_name};
  }
  [[nodiscard]] std::string metadata() const { return metadata_in(directory_); }
  [[nodiscard]] std::string records() const { return of_rank("records_", ".jsonl"); }
  [[nodiscard]] std::string records_csv() const { return of_rank("records_", ".csv"); }
  [[nodiscard]] std::string op_profile() const { return of_rank("op_profile_", ".jsonl"); }
  [[nodiscard]] std::string trace() const { return of_rank("trace_", ".json"); }
  [[nodiscard]] std::string perf_metrics() const { return of_start("perf_metrics_", ".log"); }
  [[nodiscard]] std::string perf_summary() const { return of_start("perf_summary_", ".json"); }
  [[nodiscard]] std::string perf_realtime() const { return directory_ + "/perf_realtime.log"; }
  [[nodiscard]] std::string training_log() const { return directory_ + "/training_log.json"; }
  [[nodiscard]] std::string tensorboard() const { return directory_ + "/tensorboard"; }
  [[nodiscard]] std::string prometheus() const {
    return directory_ + "/metrics.rank" + std::to_string(rank_) + ".prom";
  }

  /// Contents of the name of a record stream.
  struct RecordFile {
    std::string stamp;
    int rank = 0;
  };
  /// Also takes a name that a second start within the same second got ("….rank0.1.jsonl").
  static std::optional<RecordFile> parse_records(std::string_view file_name);
  /// The stamp in the name of a file that belongs to one start; empty for any other file.
  static std::string stamp_in(std::string_view file_name);

 private:
  [[nodiscard]] std::string of_start(std::string_view prefix, std::string_view suffix) const;
  [[nodiscard]] std::string of_rank(std::string_view prefix, std::string_view suffix) const;

  std::string directory_;
  std::string stamp_;
  int rank_;
};

/// YYYYmmdd_HHMMSS in local time.
std::string stamp_of(double unix_seconds);

/// The directory of a run.  `named` is used as it is.  Else a process on its own gets
/// logs/perf_monitor/<stamp>, created here, and logs/perf_monitor/latest links to it; a process of
/// a larger world gets logs/perf_monitor/<job id>, or logs/perf_monitor without one.  `environment`
/// is a list of "KEY=value" that ends with null.
std::string choose_run_directory(const std::string& named,
                                 int world_size,
                                 const char* const* environment,
                                 double unix_seconds);

}  // namespace flopmeter
