// SPDX-License-Identifier: Apache-2.0
// Python bindings of the simulated device.
#include "timeline.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace py = pybind11;
using namespace simgpu;

namespace {
double& setting(const std::string& name) {
  double* found = find_setting(name);
  if (found == nullptr) throw py::key_error("simgpu has no setting '" + name + "'");
  return *found;
}
py::list intervals(size_t from) {
  py::list rows;
  for (const Interval& k : device().intervals(from)) {
    rows.append(py::make_tuple(k.name,
                               k.stream,
                               std::string(name_of(k.kind)),
                               k.call,
                               k.enqueued,
                               k.start,
                               k.end,
                               k.flops,
                               k.bytes,
                               k.ideal_ns,
                               k.graph));
  }
  return rows;
}
py::list calls() {
  py::list rows;
  for (const Call& c : device().calls()) {
    rows.append(
        py::make_tuple(std::string(c.name), c.begin, c.end, c.stream, c.thread, c.during_capture));
  }
  return rows;
}
py::list marks() {
  py::list rows;
  for (const Mark& m : device().marks())
    rows.append(py::make_tuple(m.name, m.host, m.device, m.log_size));
  return rows;
}
}  // namespace

namespace simgpu {
void bind_collectives(py::module_& module);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  const auto no_gil = py::call_guard<py::gil_scoped_release>();
  module.def("get", [](const std::string& name) { return setting(name); });
  module.def("set", [](const std::string& name, double value) { setting(name) = value; });
  module.def("setting_names", &setting_names);
  module.def("intervals", &intervals, py::arg("from") = 0);
  module.def("log_size", [] { return device().log_size(); });
  module.def("calls", &calls);
  module.def("marks", &marks);
  module.def("mark", [](std::string name) { device().mark(std::move(name), current_stream()); });
  module.def("reset_log", [] { device().reset_log(); });
  module.def(
      "synchronize", [] { device().synchronize_device(); }, no_gil);
  module.def(
      "drain", [] { wait_until(device().last_end()); }, no_gil);
  module.def("is_current_stream_capturing", [] { return device().is_capturing(current_stream()); });
  module.def(
      "launch",
      [](std::string name, double duration_us) {
        device().launch(current_stream(),
                        {.name = std::move(name), .duration = microseconds(duration_us)});
      },
      no_gil);

  py::class_<Graph>(module, "Graph")
      .def(py::init<>())
      .def("capture_begin", [](Graph& graph) { device().begin_capture(current_stream(), graph); })
      .def("capture_end", [](Graph&) { device().end_capture(current_stream()); })
      .def(
          "replay", [](Graph& graph) { device().replay(current_stream(), graph); }, no_gil)
      .def("reset", [](Graph& graph) { graph = Graph{}; })
      .def_property_readonly("kernels", [](const Graph& graph) {
        size_t kernels = 0;
        for (const Node& node : graph.nodes) kernels += node.type == Node::Type::kernel;
        return kernels;
      });
  bind_collectives(module);
}
