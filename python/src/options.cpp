// SPDX-License-Identifier: Apache-2.0
//
// The monitor's options for Python: by name, YAML, command line, and environment.
#include "bindings.h"

#include <flopmeter/monitor/compat_options.h>

#include <pybind11/stl.h>
#include <unistd.h>

namespace py = pybind11;

namespace flopmeter {
namespace {

py::list rows() {
  const Options native;
  const Options flags = flag_defaults();
  py::list list;
  for (const OptionRow& row : option_rows()) {
    using namespace py::literals;  // NOLINT(google-build-using-namespace)
    CompatName other;
    for (const CompatName& each : compat_names()) {
      if (each.option == row.name) other = each;
    }
    list.append(py::dict("name"_a = std::string{row.name},
                         "flag"_a = std::string{other.flag},
                         "is_switch"_a = row.is_switch,
                         "help"_a = std::string{row.help},
                         "default"_a = row.show(native),
                         "flag_default"_a = row.show(flags),
                         "shared"_a = other.shared));
  }
  return list;
}

py::dict shown(const Options& options) {
  py::dict values;
  for (const OptionRow& row : option_rows())
    values[py::str(std::string{row.name})] = row.show(options);
  return values;
}

}  // namespace

void bind_options(py::module_& m) {
  py::class_<Options>(m, "Options", "Options of a monitor.")
      .def(py::init<>())
      .def_static("flag_defaults", &flag_defaults)
      .def(
          "set",
          [](Options& self, const std::string& name, const std::string& value) {
            check(set_option(self, name, value));
          },
          py::arg("name"),
          py::arg("value"))
      .def(
          "apply_yaml",
          [](Options& self, const std::string& text, const std::string& file) {
            check(apply_yaml(self, text, file));
          },
          py::arg("text"),
          py::arg("file") = "YAML")
      .def(
          "apply_yaml_file",
          [](Options& self, const std::string& path) { check(apply_yaml_file(self, path)); },
          py::arg("path"))
      .def("apply_environment", [](Options& self) { check(apply_environment(self, environ)); })
      .def("values", &shown);
  m.def("option_rows", &rows, "All options: name, flag, help, and defaults.");
}

}  // namespace flopmeter
