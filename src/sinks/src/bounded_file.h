// SPDX-License-Identifier: Apache-2.0
//
// Files of bounded size, and sinks that write one row per log interval into such a file.
#pragma once

#include "interval_rows.h"
#include "output_file.h"
#include "stride.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flopmeter {

/// A growing file of bounded size: near its limit it keeps fewer records.
class BoundedFile {
 public:
  BoundedFile(const RunContext& run,
              std::string path,
              OutputFile::Name name,
              std::string header = {})
      : file_(std::move(path), name, std::move(header)), stride_(run.disk_limit_bytes) {}

  /// Whether to keep the next record.
  bool keep() { return stride_.keep(); }
  Result<void> append(std::string_view text) {
    auto written = file_.append(text);
    if (written) stride_.wrote(static_cast<std::int64_t>(text.size()));
    return written;
  }
  Result<void> touch() { return file_.touch(); }
  [[nodiscard]] std::uint64_t stride() const { return stride_.stride(); }

 private:
  OutputFile file_;
  DiskStride stride_;
};

/// A sink that writes the text of one row per log interval.
class IntervalFileSink : public Sink {
 public:
  Result<void> write(const StepRecord& record) final { return put(rows_.add(record)); }
  Result<void> flush() final { return file_.touch(); }
  Result<void> finish(const std::vector<Finding>& /*findings*/) override {
    if (const auto last = put(rows_.rest()); !last) return last;
    return flush();
  }

 protected:
  IntervalFileSink(const RunContext& run,
                   std::string path,
                   OutputFile::Name name,
                   std::string header)
      : rows_(run), file_(run, std::move(path), name, std::move(header)) {}

  virtual std::string text_of(const IntervalRow& row) = 0;
  BoundedFile& file() { return file_; }

 private:
  Result<void> put(const std::optional<IntervalRow>& row) {
    return row && file_.keep() ? file_.append(text_of(*row)) : Result<void>{};
  }

  IntervalRows rows_;
  BoundedFile file_;
};

}  // namespace flopmeter
