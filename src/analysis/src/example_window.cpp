// SPDX-License-Identifier: Apache-2.0
#include "example_window.h"

namespace flopmeter {
namespace {

constexpr std::uint64_t step_flops = 50'000'000'000;
constexpr double bf16_peak = 1e12;

OpProfileRow row(const char* name, OpKind kind, Phase phase, std::uint64_t calls, double seconds) {
  return {.name = name,
          .kind = kind,
          .calls = calls,
          .self = {seconds},
          .elements = 1 << 16,
          .backward = phase == Phase::backward,
          .phase = phase};
}

OpProfile example_profile() {
  OpProfile profile;
  profile.rows = {
      row("aten::mm", OpKind::compute, Phase::backward, 100, 0.039),
      row("aten::addmm", OpKind::compute, Phase::forward, 50, 0.020),
      row("aten::native_layer_norm", OpKind::memory, Phase::forward, 25, 0.008),
      row("aten::gelu_backward", OpKind::memory, Phase::backward, 12, 0.014),
      row("aten::view", OpKind::tiny, Phase::forward, 200, 0.001),
      row("aten::_fused_adamw_", OpKind::memory, Phase::optimizer, 1, 0.004),
  };
  profile.idle = {{.phase = Phase::forward, .count = 250, .time = {0.003}},
                  {.phase = Phase::backward, .count = 250, .time = {0.005}}};
  for (OpProfileRow& each : profile.rows) {
    profile.calls += each.calls;
    profile.busy.value += each.self.value;
    if (each.kind == OpKind::compute) each.flops = step_flops / 2;
  }
  profile.wall = {0.110};
  return profile;
}

}  // namespace

void prolong(StepRecord& record, Phase phase, double seconds) {
  auto& time = record.phases[static_cast<std::size_t>(phase)];
  time = Seconds{time.value_or(Seconds{}).value + seconds};
  const double before = record.step_seconds.value;
  record.step_seconds.value += seconds;
  if (record.mfu) *record.mfu *= before / record.step_seconds.value;
  if (record.hfu) *record.hfu *= before / record.step_seconds.value;
}

Evidence example_window(const std::function<void(StepRecord&)>& spoil_step,
                        const std::function<void(Evidence&)>& spoil) {
  Evidence evidence;
  evidence.peaks.device = "example";
  evidence.peaks.set(Dtype::bf16, {bf16_peak});
  evidence.peaks.set(Dtype::fp32, {bf16_peak / 2});
  evidence.profiles.push_back(example_profile());
  for (int i = 0; i < 60; ++i) {
    StepRecord record;
    record.step = i + 1;
    record.process_step = i;
    record.samples = 32;
    record.tokens = 32 * 512;
    record.flops_source = FlopsProvenance::counted;
    record.model_flops = Flops{step_flops};
    record.hardware_flops = Flops{step_flops};
    record.recompute_flops = Flops{0};
    record.hardware_flops_by_dtype[static_cast<std::size_t>(Dtype::bf16)] = step_flops;
    record.mfu = 1;
    record.hfu = 1;
    record.step_seconds = {step_flops / bf16_peak};  // at peak; then the phases make it what it is
    record.phases[static_cast<std::size_t>(Phase::forward)] = Seconds{0};
    const double at_peak = record.step_seconds.value;
    record.phases[static_cast<std::size_t>(Phase::backward)] = Seconds{at_peak};
    prolong(record, Phase::backward, 0.062 - at_peak);
    prolong(record, Phase::forward, 0.031);
    prolong(record, Phase::optimizer, 0.004);
    prolong(record, Phase::data, 0.001);
    prolong(record, Phase::other, 0.002);
    record.inter_step_seconds = Seconds{0.0001};
    record.time_unix = 1.7e9 + 0.1 * i;
    if (spoil_step) spoil_step(record);
    evidence.steps.push_back(record);
  }
  if (spoil) spoil(evidence);
  return evidence;
}

}  // namespace flopmeter
