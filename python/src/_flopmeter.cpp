// SPDX-License-Identifier: Apache-2.0
//
// The compiled part of the Python package.
#include "bindings.h"

PYBIND11_MODULE(_flopmeter, m) {
  m.attr("__version__") = FLOPMETER_VERSION;
  flopmeter::bind_estimate(m);
  flopmeter::bind_peaks(m);
  flopmeter::bind_options(m);
  flopmeter::bind_records(m);
  flopmeter::bind_monitor_config(m);
  flopmeter::bind_monitor(m);
  flopmeter::bind_garbage_collection(m);
  flopmeter::bind_interpreter_lock(m);
  flopmeter::bind_hooks(m);
  flopmeter::bind_events(m);
  flopmeter::bind_counting(m);
  flopmeter::bind_callables(m);
  flopmeter::bind_compiled_graphs(m);
  flopmeter::bind_python_adapter(m);
}
