// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../../../tests/support/files.h"

#include <flopmeter/core/step_record.h>
#include <flopmeter/runstore/record_stream.h>

#include <gtest/gtest.h>

#include <string>

namespace flopmeter {

/// A step of rank 3 is a tenth slower than the others'; step 30 stalls.
inline StepRecord sample_step(std::int64_t step, int rank = 0) {
  StepRecord r;
  r.step = step;
  r.process_step = step;
  r.rank = rank;
  const bool stalled = step == 30;
  const double seconds = (rank == 3 ? 0.55 : 0.5) * (stalled ? 4 : 1);
  r.time_unix = 1'700'000'000 + 0.5 * static_cast<double>(step);
  r.step_seconds = {seconds};
  r.mfu = 0.2 / seconds;
  r.hfu = 0.22 / seconds;
  r.model_flops = Flops{62'400'000'000'000};
  r.hardware_flops = Flops{68'000'000'000'000};
  r.hardware_flops_by_dtype[static_cast<std::size_t>(Dtype::bf16)] = 68'000'000'000'000;
  r.flops_source = FlopsProvenance::counted;
  r.tokens = 16'384;
  r.samples = 8;
  r.phases[static_cast<std::size_t>(Phase::data)] = Seconds{stalled ? 1.55 : 0.05};
  r.phases[static_cast<std::size_t>(Phase::forward)] = Seconds{0.15};
  r.phases[static_cast<std::size_t>(Phase::backward)] = Seconds{seconds - (stalled ? 1.8 : 0.3)};
  r.phases[static_cast<std::size_t>(Phase::communication)] = Seconds{rank == 3 ? 0.05 : 0.1};
  return r;
}

inline std::string line_of(const StepRecord& record) {
  std::string line;
  JsonWriter json{line};
  write_record(json, record);
  return line + "\n";
}

/// The record stream of a rank.
inline std::string stream_of(const TemporaryDirectory& directory,
                             int rank,
                             const std::string& stamp = "20231114_221320") {
  return directory.path() + "/records_" + stamp + ".rank" + std::to_string(rank) + ".jsonl";
}

/// A run directory with sample steps.
class RunFiles : public testing::Test {
 protected:
  void write(std::int64_t from,
             std::int64_t to,
             int rank = 0,
             const std::string& stamp = "20231114_221320") {
    std::string text;
    for (std::int64_t step = from; step <= to; ++step) text += line_of(sample_step(step, rank));
    append_file(stream_of(directory_, rank, stamp), text);
  }

  TemporaryDirectory directory_;
};

}  // namespace flopmeter
