// SPDX-License-Identifier: Apache-2.0
//
// PythonMonitor: a monitor with the parts that Python connected to it.
#pragma once

#include "bindings.h"
#include "values.h"

#include <flopmeter/catalog/model_estimator.h>
#include <flopmeter/monitor/monitor.h>

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// The parts and properties of a monitor; Python fills it in.
struct MonitorConfig {
  Options options;
  PeakTable peaks;
  std::optional<Model> model;
  Training training;
  std::string convention = "model-v1";
  std::string dtype = "fp32";
  std::string model_flops = "count";            ///< count, estimate, or framework
  pybind11::object counter = pybind11::none();  ///< _torch.FlopCounter, else None
  World world;
  bool replicated = false;
  std::uintptr_t exchange = 0;
  int devices = 1;
  ModelSource model_source;  ///< stored in run.json
  std::optional<std::string> gpu;
  std::function<std::int64_t()> known_work;
  std::string policy = "explicit";  ///< explicit, per_optimizer_step, or framework
  bool reports_forward = true;
  pybind11::object device_memory = pybind11::none();  ///< () -> (current, peak, reserved) in bytes
  pybind11::object tracer = pybind11::none();         ///< with begin(step) -> bool and end(keep)
};

/// Passes the calls to an object of Python.
class PythonTracer final : public StepTracer {
 public:
  explicit PythonTracer(pybind11::object tracer) : tracer_(std::move(tracer)) {}
  bool begin(std::int64_t step) noexcept override;
  void end(bool keep) noexcept override;

 private:
  pybind11::object tracer_;
};

class PythonMonitor {
 public:
  explicit PythonMonitor(MonitorConfig config);
  ~PythonMonitor() { *link_ = nullptr; }
  PythonMonitor(const PythonMonitor&) = delete;
  PythonMonitor& operator=(const PythonMonitor&) = delete;
  PythonMonitor(PythonMonitor&&) = delete;
  PythonMonitor& operator=(PythonMonitor&&) = delete;

  Monitor& monitor() noexcept { return monitor_; }
  [[nodiscard]] Dtype dtype() const noexcept { return dtype_; }
  /// Points at this object while it exists: for hooks, which may outlive it.
  [[nodiscard]] std::shared_ptr<PythonMonitor*> link() const noexcept { return link_; }

  /// Reads the memory of the device once per log interval.
  void step_ended() noexcept;

  std::int64_t dropped_values = 0;

 private:
  /// The session holds it too: it outlives this object if an output timed out.
  struct Shared {
    std::unique_ptr<FlopEstimator> estimator;
    std::array<std::atomic<std::int64_t>, 3> memory{-1, -1, -1};  ///< negative: not known
  };
  Monitor start(MonitorConfig& config);

  Dtype dtype_;
  pybind11::object counter_;  ///< outlives the monitor
  pybind11::object device_memory_;
  std::optional<PythonTracer> tracer_;
  std::int64_t log_interval_;
  std::int64_t steps_to_memory_ = 0;
  std::shared_ptr<Shared> shared_;
  std::shared_ptr<PythonMonitor*> link_;
  Monitor monitor_;
};

}  // namespace flopmeter
