// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "library.h"
#include "nvml.h"

#include <flopmeter/telemetry/gpu_monitor.h>

#include <memory>

namespace flopmeter {

/// One GPU through NVML, and through GPM where it has that.  Of one thread; every call may hang.
class NvmlGpu {
 public:
  static Result<NvmlGpu> open(const GpuRequest& request);

  /// Fills in what NVML tells; an error where it tells nothing at all.
  Result<void> read(GpuReading& reading);
  /// Prepares GPM; an error where this GPU, driver or user has none.
  Result<void> open_gpm();
  /// Gives back what was taken; nothing is to be read after it.
  void close();

 private:
  /// The functions that may be missing, by the names of nvml.h.
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
  std::unique_ptr<nvml::GpmMetricsGet> gpm_;  ///< some 20 kB
};

}  // namespace flopmeter
