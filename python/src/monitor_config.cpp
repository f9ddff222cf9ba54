// SPDX-License-Identifier: Apache-2.0
//
// The configuration of a monitor: the only struct that crosses the binding at its start.
#include "python_monitor.h"

#include <unistd.h>

namespace py = pybind11;

namespace flopmeter {

void bind_monitor_config(py::module_& m) {
  py::class_<World>(m, "World", "The place of a process among its ranks.")
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
  py::class_<MonitorConfig>(m, "MonitorConfig", "The parts and properties of a monitor.")
      .def(py::init<>())
      .def_readwrite("options", &MonitorConfig::options)
      .def_readwrite("peaks", &MonitorConfig::peaks)
      .def_readwrite("model", &MonitorConfig::model)
      .def_readwrite("training", &MonitorConfig::training)
      .def_readwrite("convention", &MonitorConfig::convention)
      .def_readwrite("dtype", &MonitorConfig::dtype)
      .def_readwrite("model_flops", &MonitorConfig::model_flops)
      .def_readwrite("counter", &MonitorConfig::counter)
      .def_readwrite("world", &MonitorConfig::world)
      .def_readwrite("replicated", &MonitorConfig::replicated)
      .def_readwrite("exchange", &MonitorConfig::exchange)
      .def_readwrite("devices", &MonitorConfig::devices)
      .def_readwrite("model_source", &MonitorConfig::model_source)
      .def_readwrite("gpu", &MonitorConfig::gpu)
      .def_readwrite("known_work", &MonitorConfig::known_work)
      .def_readwrite("policy", &MonitorConfig::policy)
      .def_readwrite("reports_forward", &MonitorConfig::reports_forward)
      .def_readwrite("device_memory", &MonitorConfig::device_memory)
      .def_readwrite("tracer", &MonitorConfig::tracer);
}

}  // namespace flopmeter
