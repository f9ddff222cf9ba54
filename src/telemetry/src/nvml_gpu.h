// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "library.h"
#include "nvml.h"

#include <flopmeter/telemetry/gpu_monitor.h>

#include <memory>

namespace flopmeter {

/// One GPU through NVML and, if supported, GPM. Use from one thread; each call may hang.
class NvmlGpu {
 public:
  static Result<NvmlGpu> open(const GpuRequest& request);

  /// Sets the available values; an error if there are none.
  Result<void> read(GpuReading& reading);
  /// Prepares GPM; an error if the GPU, the driver, or the user does not support it.
  Result<void> open_gpm();
  /// Releases all resources; do not read afterwards.
  void close();

 private:
  /// Optional functions, with the names of nvml.h.
  struct Functions {
    const char* (*error_string)(nvml::Return) = nullptr;
    nvml::Return (*utilization)(nvml::Device, nvml::Utilization*) = nullptr;
    nvml::Return (*power)(nvml::Device, unsigned*) = nullptr;
    nvml::Return (*clock)(nvml::Device, unsigned, unsigned*) = nullptr;
    nvml::Return (*reasons)(nvml::Device, unsigned long long*) = nullptr;
    nvml::Return (*memory)(nvml::Device, nvml::Memory*) = nullptr;
    nvml::Return (*gpm_sample)(nvml::Device, nvml::GpmSample) = nullptr;
    nvml::Return (*gpm_metrics)(nvml::GpmMetricsGet*) = nullptr;
  };

  NvmlGpu() = default;
  [[nodiscard]] Error failed(const std::string& what, nvml::Return code) const;
  void read_gpm(GpuReading& reading);

  std::optional<Library> library_;
  Functions call_;
  nvml::Device device_ = nullptr;
  std::unique_ptr<nvml::GpmMetricsGet> gpm_;  ///< about 20 kB
};

}  // namespace flopmeter
