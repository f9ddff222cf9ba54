// SPDX-License-Identifier: Apache-2.0
//
// The monitor for Python.  Its writing thread never takes the GIL: Python stores the memory of the
// device in atomics, and records wait in a bounded queue until Python reads them.  No method raises
// for a value: wrong values are dropped and counted.
#include "python_monitor.h"

#include <flopmeter/catalog/convention.h>
#include <flopmeter/counting/device_clock.h>
#include <flopmeter/runstore/record_stream.h>

#include <algorithm>

namespace py = pybind11;

namespace flopmeter {

namespace {

StepPolicy policy_named(const std::string& name) {
  if (name == "explicit") return StepPolicy::explicit_marks;
  if (name == "per_batch") return StepPolicy::per_batch;
  if (name == "per_optimizer_step") return StepPolicy::per_optimizer_step;
  if (name == "framework") return StepPolicy::framework;
  throw py::value_error("policy '" + name +
                        "': expected explicit, per_batch, per_optimizer_step or framework");
}

ModelFlops model_flops_named(const std::string& name) {
  if (name == "count") return ModelFlops::count;
  if (name == "estimate") return ModelFlops::estimate;
  if (name == "framework") return ModelFlops::framework;
  throw py::value_error("model_flops '" + name + "': expected count, estimate, or framework");
}

}  // namespace

PythonMonitor::PythonMonitor(MonitorConfig config)
    : dtype_(dtype_named(config.dtype)),
      counter_(config.counter),
      device_memory_(config.device_memory),
      log_interval_(config.options.log_interval),
      shared_(std::make_shared<Shared>()),
      link_(std::make_shared<PythonMonitor*>(this)),
      monitor_(start(config)) {}

Monitor PythonMonitor::start(MonitorConfig& config) {
  take(convention_called(config.convention));
  if (config.devices < 1)
    throw py::value_error("devices is " + std::to_string(config.devices) +
                          " but a rank has one or more");
  if (config.model)
    shared_->estimator =
        take(make_estimator(*config.model, config.training, config.convention, dtype_));
  Connections connections;
  if (!counter_.is_none()) {  // of another extension module: only its address is shared
    connections.source =
        reinterpret_cast<FlopCounter*>(counter_.attr("address").cast<std::uintptr_t>());  // NOLINT
  }
  connections.estimator = shared_->estimator.get();
  connections.peaks = config.peaks;
  connections.convention = config.convention;
  connections.model_flops = model_flops_named(config.model_flops);
  connections.world = config.world;
  connections.replicated = config.replicated;
  connections.exchange = reinterpret_cast<Exchange*>(config.exchange);  // NOLINT: as the counter
  if (!config.tracer.is_none()) connections.tracer = &tracer_.emplace(config.tracer);
  connections.device_clock = adapter_device_clock();
  connections.devices = config.devices;
  connections.model_source = config.model_source;
  connections.dtype = dtype_;
  connections.policy = policy_named(config.policy);
  connections.reports_forward = config.reports_forward;
  if (config.gpu) connections.gpu = GpuRequest{.uuid = *config.gpu};
  if (config.known_work)
    connections.known_work = [work = config.known_work] { return Flops{work()}; };
  connections.device_memory = [shared = shared_] {
    const auto known = [&](std::size_t i) {
      const std::int64_t bytes = shared->memory[i].load(std::memory_order_relaxed);
      return bytes < 0 ? std::nullopt : std::optional{bytes};
    };
    return DeviceMemory{.current = known(0), .peak = known(1), .reserved = known(2)};
  };
  return take(Monitor::start(config.options, std::move(connections)));
}

bool PythonTracer::begin(std::int64_t step) noexcept {
  const py::gil_scoped_acquire gil;
  PyObject* answer = PyObject_CallMethod(tracer_.ptr(), "begin", "L", static_cast<long long>(step));
  Py_XDECREF(answer);
  clear_error();
  return answer == Py_True;
}

void PythonTracer::end(bool keep) noexcept {
  const py::gil_scoped_acquire gil;
  Py_XDECREF(PyObject_CallMethod(tracer_.ptr(), "end", "O", keep ? Py_True : Py_False));
  clear_error();
}

void PythonMonitor::step_ended() noexcept {
  if (device_memory_.is_none() || --steps_to_memory_ >= 0) return;
  steps_to_memory_ = log_interval_ - 1;
  PyObject* values = PyObject_CallNoArgs(device_memory_.ptr());
  for (Py_ssize_t i = 0; values != nullptr && PyTuple_Check(values) && i < 3; ++i) {
    if (i < PyTuple_GET_SIZE(values))
      shared_->memory[static_cast<std::size_t>(i)].store(
          whole_number(PyTuple_GET_ITEM(values, i), dropped_values).value_or(-1),
          std::memory_order_relaxed);
  }
  Py_XDECREF(values);
  clear_error();
}

namespace {

/// A name of a table such as the phases; empty and counted if there is none.
template <class Enum>
std::optional<Enum> named(py::handle value, std::size_t count, std::int64_t& dropped) noexcept {
  const auto text = text_of(value);
  for (std::size_t i = 0; i < count; ++i) {
    if (to_string(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
  }
  ++dropped;
  return std::nullopt;
}

constexpr std::size_t tag_count = static_cast<std::size_t>(StepTag::generation) + 1;

/// Marks of the loop, as flopmeter.Monitor passes them on.
void mark(PythonMonitor& self, py::handle samples, py::handle tokens) noexcept {
  self.monitor().mark_step({.samples = whole_number(samples, self.dropped_values),
                            .tokens = whole_number(tokens, self.dropped_values)});
}

void begin_step(PythonMonitor& self,
                py::handle batch,
                py::handle step,
                py::handle epoch,
                py::handle tag,
                bool is_mark) {
  OwnedBatch owned{batch, self.dtype(), self.dropped_values};
  StepInput& fields = owned.fields();
  fields.step = whole_number(step, self.dropped_values);
  fields.epoch = epoch_number(epoch, self.dropped_values);
  if (!tag.is_none())
    fields.tag = named<StepTag>(tag, tag_count, self.dropped_values).value_or(StepTag::train);
  is_mark ? self.monitor().mark_step(owned.view()) : self.monitor().begin_step(owned.view());
}

void micro_batch(PythonMonitor& self, py::handle batch) {
  self.monitor().micro_batch(OwnedBatch{batch, self.dtype(), self.dropped_values}.view());
}

void end(PythonMonitor& self) noexcept {
  self.monitor().end_step();
  self.step_ended();
}

void end_step(PythonMonitor& self,
              py::handle loss,
              py::handle grad_norm,
              py::handle learning_rate,
              std::optional<std::pair<std::int64_t, std::int64_t>> interval,
              py::handle batch) {
  const OwnedBatch owned{batch, self.dtype(), self.dropped_values};
  const StepInput input = owned.view();
  self.monitor().end_step({.loss = real_number(loss, self.dropped_values),
                           .grad_norm = real_number(grad_norm, self.dropped_values),
                           .learning_rate = real_number(learning_rate, self.dropped_values),
                           .interval = interval,
                           .batch = batch.is_none() ? nullptr : &input});
  self.step_ended();
}

void log(PythonMonitor& self,
         py::handle loss,
         py::handle grad_norm,
         py::handle learning_rate) noexcept {
  self.monitor().log({.loss = real_number(loss, self.dropped_values),
                      .grad_norm = real_number(grad_norm, self.dropped_values),
                      .learning_rate = real_number(learning_rate, self.dropped_values)});
}

void begin_phase(PythonMonitor& self, py::handle name) noexcept {
  if (const auto phase = named<Phase>(name, phase_count, self.dropped_values))
    self.monitor().begin_phase(*phase);
}

void end_phase(PythonMonitor& self, py::handle name) noexcept {
  if (const auto phase = named<Phase>(name, phase_count, self.dropped_values))
    self.monitor().end_phase(*phase);
}

/// Returns the stage before, or None.
py::object set_stage(PythonMonitor& self, py::handle name) {
  py::object before = py::none();
  const auto text = text_of(name);
  try {
    const std::string_view stage = self.monitor().set_stage(text.value_or(""));
    if (!stage.empty()) before = py::str(stage.data(), stage.size());
  } catch (...) {
    ++self.dropped_values;
  }
  if (!text && !name.is_none()) ++self.dropped_values;
  return before;
}

void set_training_phase(PythonMonitor& self, py::handle name) {
  Options options;
  if (set_option(options, "training_phase", text_of(name).value_or(""))) {
    self.monitor().set_training_phase(options.training_phase);
  } else {
    ++self.dropped_values;
  }
}

std::shared_ptr<Subscription> subscribe(PythonMonitor& self, py::handle capacity) {
  constexpr std::int64_t most = 1 << 20;
  const std::int64_t wanted = whole_number(capacity, self.dropped_values).value_or(1024);
  return self.monitor().subscribe(
      static_cast<std::size_t>(std::clamp<std::int64_t>(wanted, 1, most)));
}

py::dict status_of(PythonMonitor& self) {
  using namespace py::literals;  // NOLINT(google-build-using-namespace)
  const MonitorStatus status = self.monitor().status();
  return py::dict("disabled"_a = status.disabled,
                  "directory"_a = status.directory,
                  "trace"_a = status.trace,
                  "steps"_a = status.steps,
                  "written"_a = status.written,
                  "dropped"_a = status.dropped,
                  "misuse"_a = status.misuse,
                  "dropped_values"_a = self.dropped_values,
                  "events"_a = status.events,
                  "failed_writes"_a = status.failed_writes,
                  "measurements"_a = status.measurements,
                  "notes"_a = status.notes);
}

}  // namespace

void bind_monitor(py::module_& m) {
  using P = PythonMonitor;
  py::class_<P>(m, "Monitor", "The C++ monitor.  No method raises for a value.")
      .def(py::init<MonitorConfig>(), py::arg("config"))
      .def("mark", &mark, py::arg("samples"), py::arg("tokens"))
      .def("begin_step",
           &begin_step,
           py::arg("batch"),
           py::arg("step") = py::none(),
           py::arg("epoch") = py::none(),
           py::arg("tag") = py::none(),
           py::arg("is_mark") = false)
      .def("keep_step", [](P& self) { self.monitor().keep_step(); })
      .def("micro_batch", &micro_batch, py::arg("batch"))
      .def("log", &log, py::arg("loss"), py::arg("grad_norm"), py::arg("learning_rate"))
      .def("end", &end)
      .def("end_step",
           &end_step,
           py::arg("loss") = py::none(),
           py::arg("grad_norm") = py::none(),
           py::arg("learning_rate") = py::none(),
           py::arg("interval") = py::none(),
           py::arg("batch") = py::none())
      .def("abandon_step", [](P& self) { self.monitor().abandon_step(); })
      .def("begin_phase", &begin_phase, py::arg("name"))
      .def("end_phase", &end_phase, py::arg("name"))
      .def("set_stage", &set_stage, py::arg("name"))
      .def("set_frozen_mode", [](P& self, bool frozen) { self.monitor().set_frozen_mode(frozen); })
      .def("set_loader_seen", [](P& self) { self.monitor().set_loader_seen(); })
      .def("expect_no_optimizer", [](P& self) { self.monitor().expect_no_optimizer(); })
      .def("drop_value", [](P& self) { ++self.dropped_values; })
      .def("set_training_phase", &set_training_phase, py::arg("name"))
      .def("model_changed", [](P& self) { self.monitor().model_changed(); })
      .def(
          "add_finding",
          [](P& self,
             std::string rule,
             std::string summary,
             std::string evidence,
             std::string recommendation) {
            self.monitor().add_finding({.rule = std::move(rule),
                                        .summary = std::move(summary),
                                        .evidence = std::move(evidence),
                                        .recommendation = std::move(recommendation)});
          },
          py::arg("rule"),
          py::arg("summary"),
          py::arg("evidence"),
          py::arg("recommendation"))
      .def("subscribe", &subscribe, py::arg("capacity") = 1024)
      .def("flush", [](P& self) { self.monitor().flush(); })
      .def(
          "finish",
          [](P& self) { self.monitor().finish(); },
          py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("address",
                             [](P& self) {  // for the other extension module
                               return reinterpret_cast<std::uintptr_t>(&self.monitor());  // NOLINT
                             })
      .def_property_readonly("enabled", [](P& self) { return self.monitor().enabled(); })
      .def_property_readonly("measuring", [](P& self) { return self.monitor().measuring(); })
      .def("status", &status_of);
  py::list phases;
  for (std::size_t i = 0; i < phase_count; ++i)
    phases.append(std::string{to_string(static_cast<Phase>(i))});
  m.attr("phases") = py::tuple(phases);
  py::list tags;
  for (std::size_t i = 0; i < step_tag_count; ++i)
    tags.append(std::string{to_string(static_cast<StepTag>(i))});
  m.attr("tags") = py::tuple(tags);
}

}  // namespace flopmeter
