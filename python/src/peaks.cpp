// SPDX-License-Identifier: Apache-2.0
//
// Peaks of devices for Python.
#include "bindings.h"

#include <flopmeter/catalog/cpu_peak.h>
#include <flopmeter/catalog/devices.h>
#include <flopmeter/telemetry/cpu_info.h>
#include <flopmeter/telemetry/measured_peaks.h>

#include <pybind11/stl.h>

#include <algorithm>

namespace py = pybind11;

namespace flopmeter {
namespace {

py::dict known_peaks(const PeakTable& table) {
  py::dict peaks;
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (table.peaks[i])
      peaks[py::str(std::string{to_string(static_cast<Dtype>(i))})] = table.peaks[i]->value;
  }
  return peaks;
}

}  // namespace

void bind_peaks(py::module_& m) {
  py::class_<PeakTable>(m, "PeakTable", "Peaks of one device by dtype, in FLOP/s.")
      .def(py::init([](std::string device,
                       std::string source,
                       const std::map<std::string, double>& peaks) {
             PeakTable table{.device = std::move(device), .source = std::move(source)};
             for (const auto& [dtype, rate] : peaks) {
               if (!(rate > 0)) throw py::value_error("a peak must be a positive number of FLOP/s");
               table.set(dtype_named(dtype), {rate});
             }
             return table;
           }),
           py::arg("device"),
           py::arg("source"),
           py::arg("peaks"))
      .def_readonly("device", &PeakTable::device)
      .def_readonly("source", &PeakTable::source)
      .def_property_readonly("peaks", &known_peaks);
  m.def(
      "catalog_peaks",
      [](const std::string& name, bool sparse) {
        return peaks_of(*take(find_device(name)), sparse);
      },
      py::arg("name"),
      py::arg("sparse") = false);
  m.def(
      "measured_peaks",
      [](std::optional<int> threads) -> std::optional<PeakTable> {
        auto table = load_measured_peaks(threads);
        if (!table) return std::nullopt;
        return *std::move(table);
      },
      py::arg("threads"),
      "Result of `flopmeter peak` for this processor and number of threads; None if there is "
      "none.");
  m.def(
      "cpu_peaks",
      [](std::optional<int> threads) {
        CpuInfo cpu = take(read_cpu_info());
        if (threads && cpu.cores) cpu.cores = std::min(*cpu.cores, static_cast<double>(*threads));
        return cpu_peak(cpu);
      },
      py::arg("threads") = py::none(),
      "Peak of this CPU by formula, of at most as many cores as there are threads.");
  m.def(
      "dtype_name",
      [](const std::string& text) { return std::string{to_string(dtype_named(text))}; },
      py::arg("text"));
  m.attr("dtype_names") = [] {
    py::list names;
    for (std::size_t i = 0; i + 1 < dtype_count; ++i) {  // the last, `other`, has no peak
      names.append(std::string{to_string(static_cast<Dtype>(i))});
    }
    return py::tuple(names);
  }();
}

}  // namespace flopmeter
