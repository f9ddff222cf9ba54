// SPDX-License-Identifier: Apache-2.0
#include "interval_series.h"
#include "prometheus_text.h"

namespace flopmeter {

std::vector<OutputSeries> output_series() {
  std::vector<OutputSeries> all = PrometheusText::run_series();
  for (const IntervalSeries& each : interval_series) all.push_back(each.series);
  return all;
}

}  // namespace flopmeter
