// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/analysis/evidence.h>

#include <algorithm>

namespace flopmeter {

StepTotals summarize(const Evidence& evidence) {
  return evidence.totals ? *evidence.totals : StepTotals::of(evidence.steps);
}

double host_seconds_per_step(const Evidence& evidence,
                             std::initializer_list<double StepTotals::*> lost) {
  const StepTotals totals = summarize(evidence);
  if (evidence.device || totals.steps == 0) return 0;
  double seconds = 0;
  for (const auto member : lost) seconds += totals.*member;
  return seconds / static_cast<double>(totals.steps);
}

std::optional<Dtype> main_dtype(const StepTotals& totals) {
  const auto& flops = totals.hardware_flops_by_dtype;
  const auto most = std::max_element(flops.begin(), flops.end());
  if (*most <= 0) return std::nullopt;
  return static_cast<Dtype>(most - flops.begin());
}

std::optional<Dtype> faster_dtype(const PeakTable& peaks, Dtype own) {
  const auto own_peak = peaks.peak(own);
  if (!own_peak || (own != Dtype::fp64 && own != Dtype::fp32 && own != Dtype::tf32))
    return std::nullopt;
  std::optional<Dtype> best;
  double rate = own_peak->value;
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    const auto peak = peaks.peak(dtype);
    const bool back = dtype == Dtype::fp32 && own != Dtype::fp64;
    if (back || !peak || peak->value <= rate) continue;
    best = dtype;
    rate = peak->value;
  }
  return best;
}

}  // namespace flopmeter
