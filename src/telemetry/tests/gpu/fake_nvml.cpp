// SPDX-License-Identifier: Apache-2.0
//
// A fake libnvidia-ml.so.1 for tests without a GPU. FAKE_… macros select a failure.
#include "../../src/nvml.h"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <limits>

using namespace flopmeter::nvml;

namespace {

constexpr Return not_supported = 3;
constexpr Return gpu_is_lost = 15;
int gpu = 0;

#if defined(FAKE_FAILS)
constexpr Return answer = gpu_is_lost;
#else
constexpr Return answer = success;
#endif

#if defined(FAKE_SENTINELS)
constexpr bool sentinels = true;
#else
constexpr bool sentinels = false;
#endif

}  // namespace

extern "C" {

Return nvmlInit_v2() {
#if defined(FAKE_HANGS_AT_START)
  while (true) pause();
#endif
  return success;
}
const char* nvmlErrorString(Return code) {
  return code == gpu_is_lost ? "GPU is lost" : "Not Supported";
}
Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  *device = &gpu;
  return index == 0 ? success : not_supported;
}
#if !defined(FAKE_LACKS)
Return nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  *device = &gpu;
  return std::strcmp(uuid, "GPU-fake") == 0 ? success : 6;
}
#endif
Return nvmlDeviceGetUtilizationRates(Device /*device*/, Utilization* rates) {
  *rates = {.gpu = sentinels ? not_available : 87, .memory = sentinels ? not_available : 40};
  return answer;
}
Return nvmlDeviceGetPowerUsage(Device /*device*/, unsigned* milliwatts) {
#if defined(FAKE_HANGS)
  static std::atomic<int> calls = 0;  // a hanging monitor may run at the same time as the next one
  if (++calls > 3) {
    while (true) pause();
  }
#endif
  *milliwatts = sentinels ? not_available : 650'500;
  return answer;
}
Return nvmlDeviceGetClockInfo(Device /*device*/, unsigned type, unsigned* megahertz) {
  *megahertz = sentinels ? not_available : type == clock_sm ? 1755 : 2619;
  return answer;
}
Return nvmlDeviceGetMemoryInfo(Device /*device*/, Memory* memory) {
  *memory = {.total = 80ULL << 30U, .free = 20ULL << 30U, .used = 60ULL << 30U};
  if (sentinels) memory->used = not_available_long;
  return answer;
}
#if defined(FAKE_OLD)
Return nvmlDeviceGetCurrentClocksThrottleReasons(Device /*device*/, unsigned long long* bits) {
#else
Return nvmlDeviceGetCurrentClocksEventReasons(Device /*device*/, unsigned long long* bits) {
#endif
  *bits = sentinels ? not_available_long : 4;
  return answer;
}
#if !defined(FAKE_OLD)
Return nvmlGpmQueryDeviceSupport(Device /*device*/, GpmSupport* support) {
  support->is_supported = support->version == gpm_version ? 1 : 0;
#if defined(FAKE_NO_GPM)
  support->is_supported = 0;
#endif
  return answer;
}
Return nvmlGpmSampleAlloc(GpmSample* sample) {
  *sample = new int{0};
  return success;
}
Return nvmlGpmSampleFree(GpmSample sample) {
  delete static_cast<int*>(sample);
  return success;
}
Return nvmlGpmSampleGet(Device /*device*/, GpmSample sample) {
  static std::atomic<int> samples = 0;
  *static_cast<int*>(sample) = ++samples;
  return answer;
}
Return nvmlGpmMetricsGet(GpmMetricsGet* get) {
  const int first = *static_cast<int*>(get->sample1);
  const int second = *static_cast<int*>(get->sample2);
  if (get->version != gpm_version || second != first + 1) return 2;  // the older sample comes first
  for (unsigned i = 0; i < get->count; ++i) {
    GpmMetricValue& metric = get->metrics.at(i);
    metric.result = success;
    switch (static_cast<GpmMetric>(metric.metric)) {
      case GpmMetric::sm_util:
        metric.value = 90;
        break;
      case GpmMetric::any_tensor_util:
        metric.value = 50;
        break;
      case GpmMetric::dram_bw_util:
        metric.value = 30;
        break;
      case GpmMetric::fp32_util:
        metric.value = 10;
        break;
      default:
        metric.result = not_supported;
    }
    if (sentinels) metric.value = std::numeric_limits<double>::quiet_NaN();
  }
  return success;
}
#endif
}
