// SPDX-License-Identifier: Apache-2.0
//
// Prints sizes, offsets, and constants of our NVML declarations, to compare with nvidia-ml-py.
#include "../../src/nvml.h"

#include <cstdio>

using namespace flopmeter::nvml;

namespace {

void print(const char* name, unsigned long long value) {
  std::printf("%s %llu\n", name, value);
}

}  // namespace

int main() {
  print("sizeof c_nvmlUtilization_t", sizeof(Utilization));
  print("sizeof c_nvmlMemory_t", sizeof(Memory));
  print("sizeof c_nvmlGpmSupport_t", sizeof(GpmSupport));
  print("sizeof c_nvmlGpmMetric_t", sizeof(GpmMetricValue));
  print("sizeof c_nvmlGpmMetricsGet_t", sizeof(GpmMetricsGet));
  print("offsetof c_nvmlMemory_t.used", offsetof(Memory, used));
  print("offsetof c_nvmlGpmMetric_t.value", offsetof(GpmMetricValue, value));
  print("offsetof c_nvmlGpmMetricsGet_t.metrics", offsetof(GpmMetricsGet, metrics));
  print("constant NVML_SUCCESS", success);
  print("constant NVML_CLOCK_SM", clock_sm);
  print("constant NVML_CLOCK_MEM", clock_memory);
  print("constant NVML_GPM_METRICS_GET_VERSION", gpm_version);
  print("constant NVML_GPM_SUPPORT_VERSION", gpm_version);
  print("constant NVML_GPM_METRIC_MAX", gpm_metric_max);
  print("constant NVML_GPM_METRIC_SM_UTIL", static_cast<unsigned>(GpmMetric::sm_util));
  print("constant NVML_GPM_METRIC_ANY_TENSOR_UTIL",
        static_cast<unsigned>(GpmMetric::any_tensor_util));
  print("constant NVML_GPM_METRIC_DRAM_BW_UTIL", static_cast<unsigned>(GpmMetric::dram_bw_util));
  print("constant NVML_GPM_METRIC_FP64_UTIL", static_cast<unsigned>(GpmMetric::fp64_util));
  print("constant NVML_GPM_METRIC_FP32_UTIL", static_cast<unsigned>(GpmMetric::fp32_util));
  print("constant NVML_GPM_METRIC_FP16_UTIL", static_cast<unsigned>(GpmMetric::fp16_util));
  print("constant NVML_VALUE_NOT_AVAILABLE_uint", not_available);
  print("constant NVML_VALUE_NOT_AVAILABLE_ulonglong", not_available_long);
  return 0;
}
