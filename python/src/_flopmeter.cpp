// SPDX-License-Identifier: Apache-2.0
//
// The part of the Python package that needs no framework.
#include <flopmeter/catalog/op_rule.h>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

namespace py = pybind11;

namespace {

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const auto* family : flopmeter::op_families()) {
    for (const auto& rule : family->rules) names.emplace_back(rule.name);
  }
  return names;
}

}  // namespace

PYBIND11_MODULE(_flopmeter, m) {
  m.attr("__version__") = FLOPMETER_VERSION;
  m.def("op_names", &op_names, "Dispatcher names of the operators that have a price.");
}
