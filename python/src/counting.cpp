// SPDX-License-Identifier: Apache-2.0
//
// Counting for Python, through the torch adapter that load_adapter() loads.
#include "bindings.h"

#include <flopmeter/counting/adapter.h>
#include <flopmeter/counting/backward_hook.h>
#include <flopmeter/counting/c10d_exchange.h>
#include <flopmeter/counting/device_clock.h>
#include <flopmeter/counting/module_scope.h>
#include <flopmeter/counting/op_counter.h>
#include <flopmeter/counting/op_profiler.h>
#include <flopmeter/monitor/monitor.h>

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <stdexcept>

namespace flopmeter {
namespace {

namespace py = pybind11;

constexpr auto pass_names = std::to_array<const char*>({"forward", "backward", "recompute"});

py::object to_python(const Arg& arg) {
  switch (arg.kind) {
    case Arg::Kind::tensor:
    case Arg::Kind::list: {
      py::tuple items(arg.rank);
      for (int i = 0; i < arg.rank; ++i) items[static_cast<std::size_t>(i)] = arg[i];
      return items;
    }
    case Arg::Kind::integer:
      return py::int_(arg.integer);
    case Arg::Kind::tensors: {
      py::list items;
      for (int i = 0; i < arg.rank; ++i) items.append(to_python(arg.items[i]));
      return items;
    }
    case Arg::Kind::none:
      break;
  }
  return py::none();
}

/// Calls a Python rule with shapes for tensors.  The rule is never freed: operators may run until
/// the process ends.
UserRule python_rule(const py::function& function) {
  auto* kept = new py::function(function);
  return [kept](const OpCall& call) -> std::optional<Flops> {
    const py::gil_scoped_acquire gil;
    py::tuple args(call.args.size());
    for (std::size_t i = 0; i < call.args.size(); ++i) args[i] = to_python(call.args[i]);
    try {
      const py::object result = (*kept)(to_python(call.output), *args);
      if (result.is_none()) return std::nullopt;
      return Flops{static_cast<WideInt>(result.cast<std::int64_t>())};
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("flopmeter.register_op");
      return std::nullopt;
    }
  };
}

py::dict to_dict(const Counts& counts) {
  const auto rows = [](const std::vector<CountRow>& from) {
    py::list list;
    for (const CountRow& row : from) {
      list.append(py::make_tuple(row.name,
                                 std::string(to_string(row.dtype)),
                                 pass_names[static_cast<std::size_t>(row.pass)],
                                 row.calls,
                                 row.executed,
                                 row.model));
    }
    return list;
  };
  py::dict unsupported;
  for (const UnsupportedOp& op : counts.unsupported) unsupported[op.name.c_str()] = op.calls;
  py::dict by_dtype;
  for (std::size_t d = 0; d < dtype_count; ++d) {
    const auto dtype = static_cast<Dtype>(d);
    if (counts.hardware_flops(dtype) != 0)
      by_dtype[std::string(to_string(dtype)).c_str()] = counts.hardware_flops(dtype);
  }
  using namespace py::literals;  // NOLINT(google-build-using-namespace)
  return py::dict("model_flops"_a = counts.model_flops(),
                  "hardware_flops"_a = counts.hardware_flops(),
                  "forward"_a = counts.hardware_flops(Pass::forward),
                  "backward"_a = counts.hardware_flops(Pass::backward),
                  "recompute"_a = counts.hardware_flops(Pass::recompute),
                  "by_dtype"_a = by_dtype,
                  "op_rows"_a = rows(counts.ops),
                  "module_rows"_a = rows(counts.modules),
                  "unsupported"_a = unsupported,
                  "calls"_a = counts.totals.calls,
                  "bounded_flops"_a = counts.totals.bounded,
                  "attention_pairs"_a = std::string(to_string(counts.attention_pairs())));
}

py::dict to_dict(const OpProfile& result) {
  py::list rows;
  for (const OpProfileRow& row : result.rows) {
    rows.append(py::make_tuple(row.name,
                               std::string{to_string(row.kind)},
                               row.calls,
                               row.self.value,
                               row.elements,
                               row.backward));
  }
  using namespace py::literals;  // NOLINT(google-build-using-namespace)
  return py::dict("rows"_a = rows,
                  "calls"_a = result.calls,
                  "wall_seconds"_a = result.wall.value,
                  "busy_seconds"_a = result.busy.value);
}

void check_registered(const Result<void>& result) {
  if (!result && result.error().code == ErrorCode::not_found)
    throw py::key_error(result.error().message);
  check(result);
}

const py::function*& delay_function() {
  static const py::function* function = nullptr;
  return function;
}

bool run_delay(double seconds) {
  const py::gil_scoped_acquire gil;
  try {
    return (*delay_function())(seconds).cast<bool>();
  } catch (py::error_already_set& error) {
    error.discard_as_unraisable("flopmeter");
  } catch (const py::cast_error&) {  // not a bool
  }
  return false;
}

}  // namespace

void bind_counting(py::module_& m) {
  m.def("load_adapter", [](const std::string& path) { check(load_adapter(path)); });
  m.def("use_device_of",
        use_device_of,
        py::arg("tensor"),
        "The model trains on the device of the tensor with this address.");
  m.def("count_captures",
        count_captures,
        py::arg("change"),
        "Adds to the number of graph captures under way.");
  m.def(
      "report_wait",
      [](bool begins) {
        report_device_event(
            begins ? DeviceEvent::synchronization_begin : DeviceEvent::synchronization_end, 0);
      },
      py::arg("begins"),
      "The program is about to wait for the device, or did.");
  m.def(
      "report_backward",
      [] { report_device_event(DeviceEvent::backward_call, 0); },
      "The program calls backward().");
  m.def(
      "set_device_delay",
      [](const py::function& delay) {
        delay_function() = new py::function(delay);  // never freed: the interpreter may be gone
        set_device_delay(&run_delay);
      },
      py::arg("delay"),
      "`delay(seconds)` enqueues a kernel that does nothing for that long, or returns False.");
  py::class_<OpCounter>(m, "OpCounter")
      .def(py::init<bool>(), py::arg("modules") = false)
      .def("stop", &OpCounter::stop)
      .def("counts", [](const OpCounter& self) { return to_dict(self.counts()); });
  py::class_<Region>(m, "Region")
      .def(py::init<>())
      .def("stop", &Region::stop)
      .def("replayed", &Region::replayed)
      .def("discard", &Region::discard)
      .def(
          "replay",
          [](Region& self) {
            if (attached_adapter()->inside_call() == 0) self.replayed(1);
          },
          "Adds one run, unless it is part of other counted work, such as a compiled graph.")
      .def("counts", [](const Region& self) { return to_dict(self.counts()); });
  py::class_<OpProfiler>(m, "OpProfiler")
      .def(py::init([](double tiny_seconds, bool device_times) {
             return std::make_unique<OpProfiler>(Seconds{tiny_seconds}, device_times);
           }),
           py::arg("tiny_seconds") = 10e-6,
           py::arg("device_times") = false)
      .def("stop", [](OpProfiler& self) { return to_dict(self.stop()); });
  py::class_<BackwardHook>(m, "BackwardHook", "Reports backward passes to the monitor.")
      .def(py::init([](std::uintptr_t address) {
             auto* monitor = reinterpret_cast<Monitor*>(address);  // NOLINT: by address
             return std::make_unique<BackwardHook>(
                 [monitor] { monitor->on({.kind = StepEventKind::backward_begin}); },
                 [monitor] { monitor->on({.kind = StepEventKind::backward_end}); });
           }),
           py::arg("monitor"))
      .def("watch", &BackwardHook::watch, py::arg("tensor"))
      .def("take_begun", &BackwardHook::take_begun);
  py::class_<TorchFlopCounter>(
      m,
      "FlopCounter",
      "Counts operators for a monitor, which takes its address and must not outlive it.")
      .def(py::init([](bool replicated) {
             check(install_op_counter());
             return std::make_unique<TorchFlopCounter>(
                 replicated,
                 counts_in_python() ? "counted in Python, because the torch adapter is not compiled"
                                    : "");
           }),
           py::arg("replicated") = false)
      .def_property_readonly("address", [](TorchFlopCounter& self) {
        return reinterpret_cast<std::uintptr_t>(
            static_cast<FlopCounter*>(&self));  // NOLINT: by address
      });
  m.def(
      "make_exchange",
      [](const std::string& group_name) {
        auto made = make_c10d_exchange(group_name);
        if (!made) throw std::runtime_error(made.error().message);
        // Never freed: a broadcast may be under way when the program ends.
        return reinterpret_cast<std::uintptr_t>((*made).release());  // NOLINT: by address
      },
      "The address of an exchange over the process group of this name.");
  m.def("register_op", [](const std::string& name, const py::function& rule) {
    check_registered(register_op(name, python_rule(rule)));
  });
  m.def("register_function", [](const std::string& name, const py::function& rule) {
    check_registered(register_function(name, python_rule(rule)));
  });
  m.def(
      "unsupported_ops",
      [] {
        py::dict calls;
        for (const UnsupportedOp& op : unsupported_ops()) calls[op.name.c_str()] = op.calls;
        return calls;
      },
      "Calls of what ran without a FLOP cost since the process began, by name.");
  m.def("intercepted_ops", &intercepted_ops);
  m.def("module_id", &module_id);
  m.def("replicated_module", &replicated_module);
  m.def("enter_module", &enter_module);
  m.def("leave_module", &leave_module);
}

}  // namespace flopmeter
