// SPDX-License-Identifier: Apache-2.0
//
// Finished records for Python, and the totals over some of them.
#include "bindings.h"
#include "values.h"

#include <flopmeter/core/step_totals.h>
#include <flopmeter/monitor/monitor.h>
#include <flopmeter/runstore/record_stream.h>

#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>

namespace py = pybind11;

namespace flopmeter {
namespace {

/// Waits in parts, so that signals of the program are handled.
std::optional<StepRecord> wait_for_record(Subscription& self, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr double longest = 86'400;
  constexpr std::chrono::milliseconds part{500};
  const std::chrono::duration<double> wait{seconds > 0 ? std::min(seconds, longest) : 0};
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    {
      const py::gil_scoped_release release;
      if (auto record = self.next(std::clamp(left, std::chrono::milliseconds{0}, part)))
        return record;
    }
    if (left <= part || self.closed()) return std::nullopt;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

std::optional<std::string> next_record(Subscription& self, py::handle seconds) {
  std::int64_t dropped = 0;  // does not wait for a value that is not a number
  const auto record = wait_for_record(self, real_number(seconds, dropped).value_or(0));
  if (!record) return std::nullopt;
  std::string text;
  JsonWriter json(text);
  write_record(json, *record);
  return text;
}

void add_record(StepTotals& totals, const std::string& text) {
  if (const auto record = parse_record(text)) totals.add(*record);
}

std::optional<double> step_seconds(const StepTotals& totals) {
  const auto seconds = totals.step_seconds();
  return seconds ? std::optional{seconds->value} : std::nullopt;
}

}  // namespace

void bind_records(py::module_& m) {
  py::class_<Subscription, std::shared_ptr<Subscription>>(
      m, "Subscription", "Finished records, oldest first.")
      .def("next",
           &next_record,
           py::arg("seconds"),
           "The next record as JSON; None if none arrives in time.")
      .def_property_readonly("closed", &Subscription::closed)
      .def_property_readonly("dropped", &Subscription::dropped);
  py::class_<StepTotals>(m, "StepTotals", "Totals over the train steps that were added.")
      .def(py::init<>())
      .def("add", &add_record, py::arg("record"), "Adds a record, given as JSON.")
      .def_readonly("steps", &StepTotals::steps)
      .def_property_readonly("step_seconds", &step_seconds)
      .def_property_readonly("mfu", &StepTotals::mfu)
      .def_property_readonly("flops_per_second", &StepTotals::flops_per_second)
      .def_property_readonly("tokens_per_second", &StepTotals::tokens_per_second)
      .def_property_readonly("samples_per_second", &StepTotals::samples_per_second);
}

}  // namespace flopmeter
