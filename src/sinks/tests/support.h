// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../../../tests/support/files.h"

#include <flopmeter/core/sink.h>

#include <string>
#include <vector>

namespace flopmeter {

/// The run of FlagScale's documentation: eight devices, 42.5 GB.
inline RunContext sample_run(const std::string& directory) {
  RunContext run;
  run.directory = directory;
  run.metadata.run_id = "0123456789abcdef";
  run.metadata.stamp = "20240129_103000";
  run.metadata.model = "llama-2-7b";
  run.metadata.convention = "model-v1";
  run.metadata.peaks.device = "A100";
  run.metadata.peaks.source = "catalog";
  run.metadata.peaks.set(Dtype::bf16, {312e12});
  run.metadata.world_size = 8;
  run.metadata.data_parallel = 8;
  run.metadata.total_steps = 1000;
  return run;
}

/// One step of it, on one of the eight ranks.
inline StepRecord sample_step(std::int64_t step) {
  StepRecord record;
  record.step = step;
  record.process_step = step - 1;
  record.time_unix =
      1706524215.0 + static_cast<double>(step - 10) * 1.5;  // 2024-01-29 10:30:15 UTC at step 10
  record.step_seconds = {0.25};
  record.samples = 16;
  record.tokens = 32768;
  record.model_flops = Flops{31'335'000'000'000};
  record.hardware_flops = Flops{41'780'000'000'000};
  record.model_flops_by_dtype[static_cast<std::size_t>(Dtype::bf16)] = 31'335'000'000'000;
  record.hardware_flops_by_dtype[static_cast<std::size_t>(Dtype::bf16)] = 41'780'000'000'000;
  record.flops_source = FlopsProvenance::counted;
  record.attention_pairs = AttentionPairs::exact;
  record.convention = "model-v1";
  record.mfu = 31.335e12 / 0.25 / 312e12;
  record.hfu = 41.78e12 / 0.25 / 312e12;
  record.phases[static_cast<std::size_t>(Phase::data)] = Seconds{0.01};
  record.phases[static_cast<std::size_t>(Phase::forward)] = Seconds{0.08};
  record.phases[static_cast<std::size_t>(Phase::backward)] = Seconds{0.15};
  record.phases[static_cast<std::size_t>(Phase::other)] = Seconds{0.01};
  record.memory_device_bytes = 45634027520;  // 42.5 GB of 2^30 bytes
  record.memory_device_peak_bytes = 45902462976;
  record.loss = 2.5;
  record.grad_norm = 0.75;
  record.learning_rate = 3e-4;
  record.epoch = 0;
  return record;
}

}  // namespace flopmeter
