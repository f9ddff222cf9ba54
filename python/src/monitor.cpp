// SPDX-License-Identifier: Apache-2.0
//
// The monitor for Python.  Its writing thread never takes the GIL: what Python knows (device
// memory) is put into atomics, and records wait in a bounded queue until Python asks.
#include "bindings.h"

#include <flopmeter/catalog/convention.h>
#include <flopmeter/catalog/model_estimator.h>
#include <flopmeter/monitor/monitor.h>
#include <flopmeter/runstore/record_stream.h>

#include <pybind11/functional.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <tuple>
#include <vector>

namespace py = pybind11;

namespace flopmeter {
namespace {

/// A monitor and what it is connected to.
class PythonMonitor {
 public:
  PythonMonitor(const Options& options,
                const PeakTable& peaks,
                const std::optional<Model>& model,
                const Training& training,
                const std::string& convention,
                const std::string& dtype,
                py::object source,
                const World& world,
                bool replicated,
                std::uintptr_t exchange,
                int devices,
                ModelSource model_source,
                const std::optional<std::string>& gpu,
                const std::function<std::int64_t()>& known_work)
      : dtype_(dtype_named(dtype)),
        source_(std::move(source)),
        shared_(std::make_shared<Shared>()),
        monitor_(start(options,
                       peaks,
                       model,
                       training,
                       convention,
                       world,
                       replicated,
                       exchange,
                       devices,
                       std::move(model_source),
                       gpu,
                       known_work)) {}

  using Count = std::optional<std::int64_t>;
  using Grid = std::tuple<std::int32_t, std::int32_t, std::int32_t>;

  void begin(Count samples, Count tokens) noexcept {
    monitor_.begin_step({.samples = samples, .tokens = tokens});
  }

  void begin_step(Count samples,
                  Count tokens,
                  const std::vector<std::int64_t>& lengths,
                  std::int64_t padded_length,
                  const std::vector<Grid>& images,
                  Count visual_tokens,
                  Count flops,
                  Count step,
                  Count epoch,
                  int tag) {
    give(samples,
         tokens,
         lengths,
         padded_length,
         images,
         visual_tokens,
         flops,
         [&](StepInput& input) {
           input.step = step;
           if (epoch) input.epoch = static_cast<std::int32_t>(*epoch);
           input.tag = static_cast<StepTag>(tag);
           monitor_.begin_step(input);
         });
  }

  void micro_batch(Count samples,
                   Count tokens,
                   const std::vector<std::int64_t>& lengths,
                   std::int64_t padded_length,
                   const std::vector<Grid>& images,
                   Count visual_tokens,
                   Count flops) {
    give(samples,
         tokens,
         lengths,
         padded_length,
         images,
         visual_tokens,
         flops,
         [&](StepInput& input) { monitor_.micro_batch(input); });
  }

  void end() noexcept { monitor_.end_step(); }
  void end_step(std::optional<double> loss,
                std::optional<double> grad_norm,
                std::optional<double> learning_rate,
                std::optional<std::pair<std::int64_t, std::int64_t>> interval) noexcept {
    monitor_.end_step({.loss = loss,
                       .grad_norm = grad_norm,
                       .learning_rate = learning_rate,
                       .interval = interval});
  }

  void set_device_memory(std::int64_t current, std::int64_t peak, std::int64_t reserved) noexcept {
    shared_->memory[0].store(current, std::memory_order_relaxed);
    shared_->memory[1].store(peak, std::memory_order_relaxed);
    shared_->memory[2].store(reserved, std::memory_order_relaxed);
  }

  Monitor& monitor() noexcept { return monitor_; }

 private:
  /// Held by the session too: it may outlive this object while an output does not take its data.
  struct Shared {
    std::unique_ptr<FlopEstimator> estimator;
    std::array<std::atomic<std::int64_t>, 3> memory{-1, -1, -1};  ///< negative: not known
  };

  Monitor start(const Options& options,
                const PeakTable& peaks,
                const std::optional<Model>& model,
                const Training& training,
                const std::string& convention,
                const World& world,
                bool replicated,
                std::uintptr_t exchange,
                int devices,
                ModelSource model_source,
                const std::optional<std::string>& gpu,
                const std::function<std::int64_t()>& known_work) {
    take(convention_called(convention));
    if (devices < 1)
      throw py::value_error("devices is " + std::to_string(devices) +
                            " but a rank has one or more");
    if (model) shared_->estimator = take(make_estimator(*model, training, convention, dtype_));
    Connections connections;
    if (!source_.is_none()) {  // of another extension module: only its address is shared
      connections.source =
          reinterpret_cast<FlopCounter*>(source_.attr("address").cast<std::uintptr_t>());  // NOLINT
    }
    connections.estimator = shared_->estimator.get();
    connections.peaks = peaks;
    connections.convention = convention;
    connections.world = world;
    connections.replicated = replicated;
    connections.exchange = reinterpret_cast<Exchange*>(exchange);  // NOLINT: as the source
    connections.devices = devices;
    connections.model_source = std::move(model_source);
    connections.dtype = dtype_;
    if (gpu) connections.gpu = GpuRequest{.uuid = *gpu};
    if (known_work) connections.known_work = [&known_work] { return Flops{known_work()}; };
    connections.device_memory = [shared = shared_] {
      const auto known = [&](std::size_t i) {
        const std::int64_t bytes = shared->memory[i].load(std::memory_order_relaxed);
        return bytes < 0 ? std::nullopt : std::optional{bytes};
      };
      return DeviceMemory{.current = known(0), .peak = known(1), .reserved = known(2)};
    };
    return take(Monitor::start(options, std::move(connections)));
  }

  template <class Give>
  void give(Count samples,
            Count tokens,
            const std::vector<std::int64_t>& lengths,
            std::int64_t padded_length,
            const std::vector<Grid>& images,
            Count visual_tokens,
            Count flops,
            const Give& then) {
    std::vector<ImageGrid> shapes;
    shapes.reserve(images.size());
    for (const auto& [t, h, w] : images) shapes.push_back({.t = t, .h = h, .w = w});
    StepInput input{.samples = samples, .tokens = tokens, .visual_tokens = visual_tokens};
    input.sequence_lengths = lengths;
    input.padded_length = padded_length;
    input.images = shapes;
    if (flops) input.flops = Flops{*flops};
    input.flops_dtype = dtype_;
    then(input);
  }

  Dtype dtype_;
  py::object source_;  ///< outlives the monitor
  std::shared_ptr<Shared> shared_;
  Monitor monitor_;
};

py::dict status_of(PythonMonitor& self) {
  using namespace py::literals;  // NOLINT(google-build-using-namespace)
  const MonitorStatus status = self.monitor().status();
  return py::dict("disabled"_a = status.disabled,
                  "directory"_a = status.directory,
                  "steps"_a = status.steps,
                  "written"_a = status.written,
                  "dropped"_a = status.dropped,
                  "misuse"_a = status.misuse,
                  "failed_writes"_a = status.failed_writes,
                  "measurements"_a = status.measurements,
                  "notes"_a = status.notes);
}

std::optional<std::string> next_record(Subscription& self, double seconds) {
  const py::gil_scoped_release release;
  const auto record =
      self.next(std::chrono::milliseconds{static_cast<std::int64_t>(seconds * 1000)});
  if (!record) return std::nullopt;
  std::string text;
  JsonWriter json(text);
  write_record(json, *record);
  return text;
}

}  // namespace

void bind_monitor(py::module_& m) {
  py::class_<Subscription, std::shared_ptr<Subscription>>(
      m, "Subscription", "Finished records, oldest first.")
      .def("next",
           &next_record,
           py::arg("seconds"),
           "The next record as JSON; None where none came in time.")
      .def_property_readonly("closed", &Subscription::closed)
      .def_property_readonly("dropped", &Subscription::dropped);
  py::class_<World>(m, "World", "Where a process stands among its ranks.")
      .def(py::init([] { return world_of_environment(environ); }))
      .def_readwrite("rank", &World::rank)
      .def_readwrite("local_rank", &World::local_rank)
      .def_readwrite("size", &World::size)
      .def_readwrite("data_parallel", &World::data_parallel)
      .def_readwrite("tensor_parallel", &World::tensor_parallel)
      .def_readwrite("pipeline_parallel", &World::pipeline_parallel)
      .def_readwrite("context_parallel", &World::context_parallel)
      .def_readwrite("expert_parallel", &World::expert_parallel)
      .def_readwrite("tensor_rank", &World::tensor_rank)
      .def_readwrite("pipeline_stride", &World::pipeline_stride);
  using P = PythonMonitor;
  py::class_<ModelSource>(m, "ModelSource")
      .def(py::init([](std::string name,
                       std::string config,
                       std::string family,
                       std::string trainable,
                       std::string recompute,
                       std::string attention,
                       std::optional<bool> mtp,
                       const std::string& dtype,
                       std::optional<std::int64_t> parameters) {
             return ModelSource{.name = std::move(name),
                                .config = std::move(config),
                                .family = std::move(family),
                                .trainable = std::move(trainable),
                                .recompute = std::move(recompute),
                                .attention = std::move(attention),
                                .mtp = mtp,
                                .dtype = dtype_named(dtype),
                                .parameters = parameters};
           }),
           py::kw_only(),
           py::arg("name") = "",
           py::arg("config") = "",
           py::arg("family") = "",
           py::arg("trainable") = "",
           py::arg("recompute") = "",
           py::arg("attention") = "",
           py::arg("mtp") = py::none(),
           py::arg("dtype"),
           py::arg("parameters") = py::none());
  py::class_<P>(m, "Monitor", "The monitor as C++ has it.")
      .def(py::init<const Options&,
                    const PeakTable&,
                    const std::optional<Model>&,
                    const Training&,
                    const std::string&,
                    const std::string&,
                    py::object,
                    const World&,
                    bool,
                    std::uintptr_t,
                    int,
                    ModelSource,
                    const std::optional<std::string>&,
                    const std::function<std::int64_t()>&>(),
           py::arg("options"),
           py::arg("peaks"),
           py::arg("model"),
           py::arg("training"),
           py::arg("convention"),
           py::arg("dtype"),
           py::arg("source"),
           py::arg("world"),
           py::arg("replicated"),
           py::arg("exchange"),
           py::arg("devices"),
           py::arg("model_source"),
           py::arg("gpu") = py::none(),
           py::arg("known_work") = py::none())
      .def("begin", &P::begin, py::arg("samples"), py::arg("tokens"))
      .def("begin_step",
           &P::begin_step,
           py::arg("samples"),
           py::arg("tokens"),
           py::arg("lengths"),
           py::arg("padded_length"),
           py::arg("images"),
           py::arg("visual_tokens"),
           py::arg("flops"),
           py::arg("step"),
           py::arg("epoch"),
           py::arg("tag"))
      .def("micro_batch",
           &P::micro_batch,
           py::arg("samples"),
           py::arg("tokens"),
           py::arg("lengths"),
           py::arg("padded_length"),
           py::arg("images"),
           py::arg("visual_tokens"),
           py::arg("flops"))
      .def("end", &P::end)
      .def("end_step",
           &P::end_step,
           py::arg("loss"),
           py::arg("grad_norm"),
           py::arg("learning_rate"),
           py::arg("interval") = py::none())
      .def("abandon_step", [](P& self) { self.monitor().abandon_step(); })
      .def(
          "begin_phase",
          [](P& self, int phase) { self.monitor().begin_phase(static_cast<Phase>(phase)); },
          py::arg("phase"))
      .def(
          "end_phase",
          [](P& self, int phase) { self.monitor().end_phase(static_cast<Phase>(phase)); },
          py::arg("phase"))
      .def(
          "tag_step",
          [](P& self, int tag) { self.monitor().tag_step(static_cast<StepTag>(tag)); },
          py::arg("tag"))
      .def(
          "set_training_phase",
          [](P& self, const std::string& name) {
            Options options;
            check(set_option(options, "training_phase", name));
            self.monitor().set_training_phase(options.training_phase);
          },
          py::arg("name"))
      .def("model_changed", [](P& self) { self.monitor().model_changed(); })
      .def("set_device_memory",
           &P::set_device_memory,
           py::arg("current"),
           py::arg("peak"),
           py::arg("reserved"))
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
      .def(
          "subscribe",
          [](P& self, std::size_t capacity) { return self.monitor().subscribe(capacity); },
          py::arg("capacity") = 1024)
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
  py::dict phases;
  for (std::size_t i = 0; i < phase_count; ++i)
    phases[py::str(std::string{to_string(static_cast<Phase>(i))})] = i;
  m.attr("phases") = phases;
  py::dict tags;
  for (std::size_t i = 0; i < step_tag_count; ++i) {
    tags[py::str(std::string{to_string(static_cast<StepTag>(i))})] = i;
  }
  m.attr("tags") = tags;
}

}  // namespace flopmeter
