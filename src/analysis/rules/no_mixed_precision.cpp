// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"
#include "../src/linears.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace flopmeter {
namespace {

constexpr double least_speedup = 1.3;

/// Ideal time with every dtype replaced by its faster one, divided by ideal time now.
double ideal_factor(const RuleContext& context) {
  const PeakTable& peaks = context.evidence.peaks;
  double now = 0;
  double then = 0;
  for (std::size_t i = 0; i < dtype_count; ++i) {
    const auto flops = static_cast<double>(context.totals.hardware_flops_by_dtype[i]);
    const auto peak = peaks.peaks[i];
    if (!(flops > 0) || !peak) continue;
    const auto faster = faster_dtype(peaks, static_cast<Dtype>(i));
    now += flops / peak->value;
    then += flops / (faster ? peaks.peak(*faster)->value : peak->value);
  }
  return now > 0 ? then / now : 1;
}

WhatIf in_faster_dtype(const RuleContext& context, Dtype own, Dtype faster) {
  const double factor = ideal_factor(context);
  WhatIf what_if{.useful_factor = factor, .dtype = faster};
  const std::int64_t useful = context.budget.nanoseconds(causes::useful);
  const std::int64_t below_peak = context.with_padding(causes::matmul_inefficiency);
  std::int64_t saved = std::llround(static_cast<double>(useful + below_peak) * (1 - factor));
  // Small matmuls gain less than the peaks promise, and attention may gain nothing.
  if (const auto measured = saved_in(context, faster)) saved = context.all_steps(*measured);
  const std::int64_t of_useful =
      std::min<std::int64_t>(saved, std::llround(static_cast<double>(useful) * (1 - factor)));
  what_if.saved = {{causes::useful, of_useful}, {causes::matmul_inefficiency, saved - of_useful}};
  if (own == Dtype::fp64) {
    // Every tensor becomes half as large, and with it the time to move it; autocast leaves weights
    // and most activations as they are.
    for (const Cause& cause : {causes::memory_bound, causes::optimizer})
      what_if.saved.push_back({cause, context.budget.nanoseconds(cause) / 2});
  }
  return what_if;
}

std::optional<Finding> find(const RuleContext& context) {
  const auto dtype = main_dtype(context.totals);
  const auto faster = dtype ? faster_dtype(context.evidence.peaks, *dtype) : std::nullopt;
  if (!faster) return std::nullopt;
  const auto own = context.evidence.peaks.peak(*dtype);
  const auto best = context.evidence.peaks.peak(*faster);
  if (!own || !best || *best / *own < least_speedup) return std::nullopt;
  const std::string name{to_string(*faster)};
  const WhatIf what_if = in_faster_dtype(context, *dtype, *faster);
  Finding finding = finding_of(context, "no_mixed_precision", what_if, 0.8);
  const bool all_tensors = *dtype == Dtype::fp64;
  finding.summary = "matmuls run in " + std::string{to_string(*dtype)} +
                    ", which this device computes " + fixed(*best / *own, 1) +
                    " times slower than " + name;
  finding.evidence = std::string{to_string(*dtype)} + " peak " + si(own->value) + "FLOP/s, " +
                     name + " peak " + si(best->value) + "FLOP/s";
  if (all_tensors)
    finding.recommendation = "train in fp32: model.float(), inputs, and torch.set_default_dtype()";
  if (*faster == Dtype::fp32) return finding;
  const std::string device = context.ops.profiles == 0 ? "device_type"
                             : context.ops.on_device   ? "\"cuda\""
                                                       : "\"cpu\"";
  finding.recommendation +=
      std::string{all_tensors ? "; then " : ""} + "with torch.autocast(" + device +
      ", dtype=torch." + std::string{*faster == Dtype::bf16 ? "bfloat16" : "float16"} +
      ") around forward and loss" + (*faster == Dtype::fp16 ? ", with a GradScaler" : "");
  return finding;
}

Evidence in_fp32(double bf16_peak) {
  Evidence window = example_window([](StepRecord& record) {
    std::swap(record.hardware_flops_by_dtype[static_cast<std::size_t>(Dtype::bf16)],
              record.hardware_flops_by_dtype[static_cast<std::size_t>(Dtype::fp32)]);
    prolong(record, Phase::backward, 0.05);
    *record.mfu *= 2;  // of fp32's peak, which is half of bf16's
  });
  window.peaks.set(Dtype::bf16, {bf16_peak});
  return window;
}

}  // namespace

extern constinit const Rule rule_no_mixed_precision{
    .name = "no_mixed_precision",
    .help = "the matmuls run in a dtype that is slower on this device than another one",
    .cause = &causes::matmul_inefficiency,
    .find = find,
    .fires = [] { return in_fp32(1e12); },
    .negative = [] { return in_fp32(5.5e11); }};

}  // namespace flopmeter
