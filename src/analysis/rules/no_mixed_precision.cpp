// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"
#include "../src/linears.h"

#include <flopmeter/core/text.h>
#include <flopmeter/analysis/rule.h>

#include <cmath>
#include <utility>

namespace flopmeter {
namespace {

constexpr double least_speedup = 1.3;

std::optional<Finding> find(const RuleContext& context) {
  if (!context.sums.best_dtype || !context.sums.own_dtype) return std::nullopt;
  const auto own = context.evidence.peaks.peak(*context.sums.own_dtype);
  const auto best = context.evidence.peaks.peak(*context.sums.best_dtype);
  if (!own || !best || *best / *own < least_speedup) return std::nullopt;
  const std::string name{to_string(*context.sums.best_dtype)};
  std::int64_t lost = context.with_padding(Cause::no_mixed_precision);
  // Small products gain less than the peaks say, and attention may gain nothing.
  if (const auto saved = saved_in(context, *context.sums.best_dtype))
    lost = std::llround(*saved * 1e9 * static_cast<double>(context.sums.steps));
  // Every tensor of a run in fp64 becomes half as large, and with it the time of what moves them;
  // autocast leaves weights and most activations as they are.
  const bool all_tensors = *context.sums.own_dtype == Dtype::fp64;
  if (all_tensors)
    lost +=
        (context.with_padding(Cause::memory_bound) + context.waterfall.lost(Cause::optimizer)) / 2;
  Finding finding = finding_of(context, "no_mixed_precision", lost, 0.8);
  finding.summary = "matmuls run in " + std::string{to_string(*context.sums.own_dtype)} +
                    ", which this device computes " + fixed(*best / *own, 1) +
                    " times slower than " + name;
  finding.evidence = std::string{to_string(*context.sums.own_dtype)} + " peak " + si(own->value) +
                     "FLOP/s, " + name + " peak " + si(best->value) + "FLOP/s";
  if (all_tensors)
    finding.recommendation = "train in fp32: model.float(), inputs and torch.set_default_dtype() alike";
  if (*context.sums.best_dtype == Dtype::fp32) return finding;
  const std::string device = context.ops.profiles == 0 ? "device_type"
                             : context.ops.on_device  ? "\"cuda\""
                                                      : "\"cpu\"";
  finding.recommendation += std::string{all_tensors ? "; then " : ""} + "with torch.autocast(" + device +
                    ", dtype=torch." +
                    std::string{*context.sums.best_dtype == Dtype::bf16 ? "bfloat16" : "float16"} +
                    ") around forward and loss" +
                    (*context.sums.best_dtype == Dtype::fp16 ? ", with a GradScaler" : "");
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
    .help = "the matmuls run in a format that the device computes slower than another",
    .find = find,
    .fires = [] { return in_fp32(1e12); },
    .negative = [] { return in_fp32(5.5e11); }};

}  // namespace flopmeter
