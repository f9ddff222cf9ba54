// SPDX-License-Identifier: Apache-2.0
#include "nvml_gpu.h"

#include <array>
#include <cmath>
#include <utility>

namespace flopmeter {
namespace {

constexpr double watts_per_milliwatt = 1e-3;
constexpr double hertz_per_megahertz = 1e6;

struct GpmField {
  nvml::GpmMetric metric;
  std::optional<double> GpuReading::*field;
};

constexpr std::array<GpmField, 6> gpm_fields = {{
    {nvml::GpmMetric::sm_util, &GpuReading::sm_active},
    {nvml::GpmMetric::any_tensor_util, &GpuReading::tensor_active},
    {nvml::GpmMetric::dram_bw_util, &GpuReading::dram_active},
    {nvml::GpmMetric::fp64_util, &GpuReading::fp64_active},
    {nvml::GpmMetric::fp32_util, &GpuReading::fp32_active},
    {nvml::GpmMetric::fp16_util, &GpuReading::fp16_active},
}};

std::optional<double> share(double percent) {
  if (!std::isfinite(percent) || percent < 0 || percent > 100) return std::nullopt;
  return percent / 100;
}

std::optional<std::int64_t> bytes(std::uint64_t value) {
  if (value == nvml::not_available_long) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

}  // namespace

Error NvmlGpu::failed(const std::string& what, nvml::Return code) const {
  const char* text = call_.error_string != nullptr ? call_.error_string(code) : nullptr;
  return {ErrorCode::unsupported,
          "NVML: " + what + ": " + (text != nullptr ? text : "error " + std::to_string(code))};
}

Result<NvmlGpu> NvmlGpu::open(const GpuRequest& request) {
  auto library = Library::open(request.nvml);
  if (!library) return library.error();
  NvmlGpu gpu;
  gpu.library_ = *std::move(library);
  const Library& from = *gpu.library_;
  nvml::Return (*init)() = nullptr;
  nvml::Return (*by_uuid)(const char*, nvml::Device*) = nullptr;
  nvml::Return (*by_index)(unsigned, nvml::Device*) = nullptr;
  if (!from.find("nvmlInit_v2", init) || !from.find("nvmlDeviceGetHandleByUUID", by_uuid) ||
      !from.find("nvmlDeviceGetHandleByIndex_v2", by_index)) {
    return Error{ErrorCode::unsupported, from.name() + " lacks NVML functions"};
  }
  Functions& call = gpu.call_;
  // Values of missing functions stay empty.
  static_cast<void>(from.find("nvmlErrorString", call.error_string));
  static_cast<void>(from.find("nvmlDeviceGetUtilizationRates", call.utilization));
  static_cast<void>(from.find("nvmlDeviceGetPowerUsage", call.power));
  static_cast<void>(from.find("nvmlDeviceGetClockInfo", call.clock));
  static_cast<void>(from.find("nvmlDeviceGetMemoryInfo", call.memory));
  if (!from.find("nvmlDeviceGetCurrentClocksEventReasons",
                 call.reasons)) {  // name before driver 535
    static_cast<void>(from.find("nvmlDeviceGetCurrentClocksThrottleReasons", call.reasons));
  }
  if (const auto code = init(); code != nvml::success) return gpu.failed("cannot initialize", code);
  const auto code = request.uuid.empty() ? by_index(0, &gpu.device_)
                                         : by_uuid(request.uuid.c_str(), &gpu.device_);
  if (code != nvml::success) return gpu.failed("GPU " + request.uuid, code);
  return gpu;
}

Result<void> NvmlGpu::open_gpm() {
  nvml::Return (*support)(nvml::Device, nvml::GpmSupport*) = nullptr;
  nvml::Return (*allocate)(nvml::GpmSample*) = nullptr;
  if (!library_->find("nvmlGpmQueryDeviceSupport", support) ||
      !library_->find("nvmlGpmSampleAlloc", allocate) ||
      !library_->find("nvmlGpmSampleGet", call_.gpm_sample) ||
      !library_->find("nvmlGpmMetricsGet", call_.gpm_metrics)) {
    return Error{ErrorCode::unsupported, "GPM: the driver is too old"};
  }
  nvml::GpmSupport supported;
  if (const auto code = support(device_, &supported); code != nvml::success)
    return failed("GPM", code);
  if (supported.is_supported == 0)
    return Error{ErrorCode::unsupported, "GPM: not supported by this GPU"};
  auto gpm = std::make_unique<nvml::GpmMetricsGet>();
  for (nvml::GpmSample* sample : {&gpm->sample1, &gpm->sample2}) {
    if (const auto code = allocate(sample); code != nvml::success) return failed("GPM", code);
  }
  if (const auto code = call_.gpm_sample(device_, gpm->sample1); code != nvml::success)
    return failed("GPM", code);
  gpm_ = std::move(gpm);
  return {};
}

void NvmlGpu::close() {
  nvml::Return (*free_sample)(nvml::GpmSample) = nullptr;
  if (gpm_ && library_->find("nvmlGpmSampleFree", free_sample)) {
    free_sample(gpm_->sample1);
    free_sample(gpm_->sample2);
  }
  gpm_.reset();
  nvml::Return (*shut_down)() = nullptr;
  if (library_->find("nvmlShutdown", shut_down)) shut_down();
}

void NvmlGpu::read_gpm(GpuReading& reading) {
  if (call_.gpm_sample(device_, gpm_->sample2) != nvml::success) return;
  gpm_->version = nvml::gpm_version;
  gpm_->count = gpm_fields.size();
  for (std::size_t i = 0; i < gpm_fields.size(); ++i) {
    gpm_->metrics[i] = {.metric = static_cast<unsigned>(gpm_fields[i].metric)};
  }
  if (call_.gpm_metrics(gpm_.get()) == nvml::success) {
    for (std::size_t i = 0; i < gpm_fields.size(); ++i) {
      const nvml::GpmMetricValue& value = gpm_->metrics[i];
      if (value.result == nvml::success) reading.*gpm_fields[i].field = share(value.value);
    }
  }
  std::swap(gpm_->sample1, gpm_->sample2);
}

Result<void> NvmlGpu::read(GpuReading& reading) {
  nvml::Return last = nvml::success;
  bool any = false;
  const auto good = [&](nvml::Return code) {
    any = any || code == nvml::success;
    if (code != nvml::success) last = code;
    return code == nvml::success;
  };
  if (nvml::Utilization rates;
      call_.utilization != nullptr && good(call_.utilization(device_, &rates)))
    reading.utilization = share(rates.gpu);  // unavailable values are above 100 %
  const auto put = [](std::optional<double>& field, unsigned value, double unit) {
    if (value != nvml::not_available) field = value * unit;
  };
  unsigned value = 0;
  if (call_.power != nullptr && good(call_.power(device_, &value)))
    put(reading.power_watts, value, watts_per_milliwatt);
  if (call_.clock != nullptr && good(call_.clock(device_, nvml::clock_sm, &value)))
    put(reading.sm_clock_hertz, value, hertz_per_megahertz);
  if (call_.clock != nullptr && good(call_.clock(device_, nvml::clock_memory, &value)))
    put(reading.memory_clock_hertz, value, hertz_per_megahertz);
  if (unsigned long long bits = 0; call_.reasons != nullptr &&
                                   good(call_.reasons(device_, &bits)) &&
                                   bits != nvml::not_available_long) {
    reading.throttle_reasons = bits;
  }
  if (nvml::Memory memory; call_.memory != nullptr && good(call_.memory(device_, &memory))) {
    reading.memory_used_bytes = bytes(memory.used);
  }
  if (!any) return failed("no value can be read", last);
  if (gpm_) read_gpm(reading);
  return {};
}

}  // namespace flopmeter
