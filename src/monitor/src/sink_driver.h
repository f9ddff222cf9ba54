// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/sink.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Calls the sinks so that none of them can do harm: an exception or error is counted, reported
/// once, and followed by a back-off that doubles with every further failure.  Used by the writer
/// thread only.
class SinkDriver {
 public:
  using Report = std::function<void(const std::string&)>;
  explicit SinkDriver(Report report) : report_(std::move(report)) {}

  void add(std::string name, std::unique_ptr<Sink> sink) {
    entries_.push_back({std::move(name), std::move(sink)});
  }

  /// With `may_wait`, steps of the same kind share a record: one write for many steps keeps up with
  /// any loop.  write_merged() writes a record that waits for more steps.
  void write(const StepRecord& record, std::int64_t now_ns, bool may_wait);
  void write_merged(std::int64_t now_ns) noexcept;
  [[nodiscard]] bool is_merging() const { return merged_.has_value(); }
  void flush(std::int64_t now_ns) noexcept;
  void found(const std::vector<Finding>& findings, std::int64_t now_ns) noexcept;
  void finish(const std::vector<Finding>& findings) noexcept;

  /// Counts a failed write of something other than a sink.
  void count_failure() noexcept { ++failures_; }
  [[nodiscard]] std::uint64_t failures() const { return failures_; }

 private:
  struct Entry {
    std::string name;
    std::unique_ptr<Sink> sink;
    std::int64_t not_before_ns = 0;
    std::int64_t backoff_ns = 0;
    bool reported = false;
  };
  template <class Call>
  void attempt(Entry& entry, std::int64_t now_ns, Call&& call) noexcept;
  void write_now(const StepRecord& record, std::int64_t now_ns) noexcept;
  void failed(Entry& entry, std::int64_t now_ns, std::string_view why) noexcept;

  Report report_;
  std::vector<Entry> entries_;
  std::optional<StepRecord> merged_;
  std::uint64_t failures_ = 0;
  std::set<std::string> reasons_;  ///< that were reported
};

}  // namespace flopmeter
