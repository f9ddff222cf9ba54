// SPDX-License-Identifier: Apache-2.0
#include "hardware.h"

#include <flopmeter/core/static_text.h>

#include <exception>

namespace flopmeter {
namespace {

constexpr std::int64_t poll_interval_ns = 100'000'000;

}  // namespace

void Hardware::give_up(const std::string& reason) {
  counters_.reset();
  plan_.set_hardware(false);
  resolver_.no_counters(static_text(reason));
}

Result<double> Hardware::open_counters(const Connections& connections) {
  auto opened = gpu_ ? open_gpu_flop_counters(
                           *gpu_, connections.dtype, connections.peaks.peak(connections.dtype))
                     : connections.open_counters();
  if (!opened) return opened.error();
  counters_ = *std::move(opened);
  KnownWork work = connections.known_work;
  if (!work && !gpu_) work = multiply_matrices;
  if (!work) {
    return Error{ErrorCode::unsupported,
                 "no hardware counters: no known work on the GPU to calibrate them with"};
  }
  return calibrate(*counters_, work);
}

void Hardware::open(const Options& options, const Connections& connections) {
  const bool hybrid = options.mode == Mode::hybrid;
  if (connections.gpu && (options.gpu_metrics || (hybrid && options.hardware_counters))) {
    GpuRequest request = *connections.gpu;
    request.activity = hybrid && options.hardware_counters;
    if (!request.activity) request.interval *= 10;
    gpu_ = std::make_unique<GpuMonitor>(request);
  }
  if (!hybrid) return;
  if (!options.hardware_counters) {
    give_up("hardware counters are disabled");
    return;
  }
  Result<double> factor = 1.0;
  try {
    factor = open_counters(connections);
  } catch (const std::exception& error) {
    factor = Error{ErrorCode::unsupported,
                   std::string{"no hardware counters: known work failed: "} + error.what()};
  }
  if (!factor) {
    give_up(factor.error().message);
    note_(factor.error().message +
          (options.fallback_to_profiler ? "; FLOPs are counted instead" : ""));
    return;
  }
  resolver_.set_counters(counters_->dtype(), *factor);
  plan_.set_hardware(true);
  poll(0, true);  // before the first step
}

void Hardware::poll(std::int64_t now_ns, bool wanted) noexcept {
  if (!counters_ || (!wanted && now_ns - polled_ns_ < poll_interval_ns)) return;
  polled_ns_ = now_ns;
  try {
    if (const auto reading = counters_->read()) {
      timeline_.add(*reading);
    } else {
      give_up("hardware counters failed");
    }
  } catch (...) {  // an allocation failed: no reading
  }
}

void Hardware::fill(Slot& slot) {
  slot.counter_flops.reset();
  if (counters_) slot.counter_flops = timeline_.between(slot.start_ns, slot.end_ns);
  if (!gpu_) return;
  if (const auto reading = gpu_->latest()) {
    slot.record.gpu_utilization = reading->utilization;
    slot.record.gpu_tensor_active = reading->tensor_active;
    slot.record.gpu_dram_active = reading->dram_active;
    slot.record.gpu_power_watts = reading->power_watts;
    slot.record.gpu_sm_clock_hertz = reading->sm_clock_hertz;
    slot.record.gpu_throttle_reasons = reading->throttle_reasons;
    slot.record.gpu_memory_used_bytes = reading->memory_used_bytes;
    return;
  }
  if (const std::string reason = gpu_->why_not(); !reason.empty() && !logged_gpu_) {
    logged_gpu_ = true;
    note_("no GPU telemetry: " + reason);
  }
}

}  // namespace flopmeter
