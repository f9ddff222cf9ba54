// SPDX-License-Identifier: Apache-2.0
//
// A run of many ranks with unequal work, written as the monitor writes it.
#pragma once

#include <flopmeter/runstore/record_stream.h>

#include <fstream>
#include <random>
#include <set>
#include <string>

namespace flopmeter {

struct SimulatedRun {
  int ranks = 200;
  int steps = 100;
  unsigned seed = 1;
  std::set<int> missing;
  int slow_rank = -1;         ///< computes at a third less speed
  bool in_step = false;       ///< collectives keep the ranks together
  bool records_waits = true;  ///< in step: the time in collectives is recorded
};

/// Writes run.json and a stream a rank.  Each rank does 0.7 to 1.3 times the mean work at a speed
/// that varies by some percent.  Returns the model FLOPs of all ranks that wrote.
inline WideInt write_run(const SimulatedRun& sim, const std::string& directory) {
  std::ofstream{directory + "/run.json"}
      << R"({"schema":"flopmeter.run/2","run_id":"feedfacefeedface","convention":"model-v1","world":{"size":)"
      << sim.ranks << R"(},"log_interval":10})";
  constexpr double mean_flops = 4e12;
  constexpr double speed = 2e14;
  constexpr double peak = 4e14;
  WideInt total = 0;
  std::string text;
  for (int rank = 0; rank < sim.ranks; ++rank) {
    if (sim.missing.contains(rank)) continue;
    std::mt19937_64 random{sim.seed * 1'000'003ULL + static_cast<unsigned>(rank)};
    std::uniform_real_distribution<double> work{0.7, 1.3};
    std::normal_distribution<double> noise{1, 0.03};
    text.clear();
    for (int step = 1; step <= sim.steps; ++step) {
      StepRecord record;
      record.step = step;
      record.process_step = step - 1;
      record.rank = rank;
      record.world_size = sim.ranks;
      record.data_parallel = sim.ranks;
      record.convention = "model-v1";
      record.flops_source = FlopsProvenance::counted;
      record.attention_pairs = AttentionPairs::exact;
      const auto flops = static_cast<std::int64_t>(mean_flops * work(random));
      const double busy =
          static_cast<double>(flops) / speed / noise(random) * (rank == sim.slow_rank ? 1.5 : 1);
      const double longest = mean_flops * 1.3 * 1.5 * 1.2 / speed;
      record.step_seconds = {sim.in_step ? longest : busy};
      if (!sim.in_step || sim.records_waits) {
        record.phases[static_cast<std::size_t>(Phase::communication)] =
            Seconds{sim.in_step ? longest - busy : 0};
        record.phases[static_cast<std::size_t>(Phase::backward)] = Seconds{busy * 0.6};
        record.phases[static_cast<std::size_t>(Phase::forward)] = Seconds{busy * 0.4};
        record.overlapped_communication = Seconds{0};
      }
      record.time_unix = 1.7e9 + step * longest;
      record.model_flops = Flops{flops};
      record.hardware_flops = Flops{flops};
      record.hardware_flops_by_dtype[static_cast<std::size_t>(Dtype::bf16)] =
          static_cast<std::uint64_t>(flops);
      record.mfu = static_cast<double>(flops) / peak / record.step_seconds.value;
      record.hfu = record.mfu;
      record.tokens = 8192;
      record.samples = 4;
      record.memory_rss_bytes = 1 << 30;
      record.loss = 2.5;
      total += flops;
      JsonWriter json{text};
      write_record(json, record);
      text.push_back('\n');
    }
    std::ofstream{directory + "/records_20240129_103000.rank" + std::to_string(rank) + ".jsonl",
                  std::ios::binary}
        << text;
  }
  return total;
}

}  // namespace flopmeter
