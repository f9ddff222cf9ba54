// SPDX-License-Identifier: Apache-2.0
#include "read_streams.h"

#include <flopmeter/runstore/record_stream.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

namespace flopmeter {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// For each stream of a rank the step from which on a later start did the work again.
std::vector<std::int64_t> overtaken_from(const std::vector<RankFile>& files) {
  std::vector<std::int64_t> from(files.size(), never);
  for (std::size_t i = files.size(); i-- > 1;) {
    const auto first = RecordReader{files[i].path}.next();
    from[i - 1] = std::min(from[i], first ? first->step : never);
  }
  return from;
}

}  // namespace

std::int64_t read_streams(const RunDirectory& run,
                          const std::function<void(const StepRecord&)>& take) {
  std::int64_t damaged = 0;
  for (auto file = run.files.begin(); file != run.files.end();) {
    const auto next = std::find_if(
        file, run.files.end(), [&](const RankFile& other) { return other.rank != file->rank; });
    const std::vector<RankFile> streams{file, next};
    const auto limits = overtaken_from(streams);
    for (std::size_t i = 0; i < streams.size(); ++i) {
      RecordReader reader{streams[i].path};
      while (const auto record = reader.next()) {
        if (record->step < limits[i]) take(*record);
      }
      damaged += reader.damaged_lines();
    }
    file = next;
  }
  return damaged;
}

}  // namespace flopmeter
