// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dcgm.h"
#include "library.h"

#include <flopmeter/telemetry/gpu_monitor.h>

#include <vector>

namespace flopmeter {

/// Unit activity of one GPU through DCGM with an embedded engine. Use from one thread; each call
/// may hang.
class DcgmGpu {
 public:
  static Result<DcgmGpu> open(const GpuRequest& request);

  void read(GpuReading& reading);
  /// Stops the engine; do not read afterwards.
  void close();

 private:
  using LatestValues =
      dcgm::Return(dcgm::Handle, int, int, unsigned short*, unsigned, dcgm::FieldValue*);

  DcgmGpu() = default;
  [[nodiscard]] Result<void> find_gpu(const std::string& uuid,
                                      dcgm::Return (*devices)(dcgm::Handle, unsigned*, int*));

  LatestValues* latest_values_ = nullptr;
  dcgm::Return (*update_)(dcgm::Handle, int) = nullptr;
  dcgm::Return (*stop_)(dcgm::Handle) = nullptr;
  dcgm::Handle handle_ = 0;
  int gpu_ = 0;
  std::vector<dcgm::FieldValue> values_;
};

}  // namespace flopmeter
