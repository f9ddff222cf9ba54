// SPDX-License-Identifier: Apache-2.0
//
// Events that Python reports to the step tracker.
#include "batch_inspector.h"
#include "python_monitor.h"

#include <algorithm>
#include <array>

namespace py = pybind11;

namespace flopmeter {
namespace {

/// In the order of StepEventKind.
constexpr auto event_names = std::to_array<std::string_view>(
    {"loop_begin",     "loop_end",         "fetch_begin",    "fetch_end",
     "forward_begin",  "forward_end",      "backward_begin", "backward_end",
     "replay",         "optimizer_begin",  "optimizer_end",  "evaluation_begin",
     "evaluation_end", "checkpoint_begin", "checkpoint_end", "generation_begin",
     "generation_end", "batch_begin",      "batch_end",      "epoch_end"});

/// Events of wrapped loaders and integrations.
class Events {
 public:
  explicit Events(PythonMonitor& monitor) : link_(monitor.link()) {}

  /// Reports an event by name; returns the names of actions for the reporter, mostly none.
  py::tuple on(py::handle name, const py::kwargs& facts) {
    if (*link_ == nullptr) return py::tuple{};
    PythonMonitor& monitor = **link_;
    const auto at = std::find(event_names.begin(), event_names.end(), text_of(name));
    if (at == event_names.end()) {
      ++monitor.dropped_values;
      return py::tuple{};
    }
    py::ssize_t known = 0;
    const auto fact = [&](const char* key) {
      PyObject* value = PyDict_GetItemString(facts.ptr(), key);
      if (value != nullptr) ++known;
      return py::handle{value != nullptr ? value : Py_None};
    };
    const py::handle batch = fact("batch");
    const py::handle step = fact("step");
    const py::handle epoch = fact("epoch");
    const py::handle loss = fact("loss");
    const py::handle samples = fact("samples");
    const py::handle tokens = fact("tokens");
    StepEvent event{.kind = static_cast<StepEventKind>(at - event_names.begin())};
    event.gradients = fact("gradients").ptr() != Py_False;
    event.policy = text_of(fact("policy")) == "per_batch" ? StepPolicy::per_batch
                                                          : StepPolicy::per_optimizer_step;
    monitor.dropped_values += PyDict_GET_SIZE(facts.ptr()) - known;
    const StepOutcome outcome{.loss = real_number(loss, monitor.dropped_values)};
    event.outcome = &outcome;
    event.has_batch = event.kind == StepEventKind::fetch_end && !batch.is_none();
    Described described{*this, batch, step, epoch, samples, tokens, event.has_batch};
    event.describe = [](void* context) -> const StepInput* {
      return static_cast<Described*>(context)->describe();
    };
    event.context = &described;
    const StepReply reply = monitor.monitor().on(event);
    if (reply.step_ended) monitor.step_ended();
    if (!(reply.step_ended || reply.not_training || reply.step_discarded)) return py::tuple{};
    py::list names;
    if (reply.step_ended) names.append("step_ended");
    if (reply.not_training) names.append("not_training");
    if (reply.step_discarded) names.append("step_discarded");
    return py::tuple(names);
  }

 private:
  struct Described {
    Events& events;
    py::handle batch;
    py::handle step;
    py::handle epoch;
    py::handle samples;
    py::handle tokens;
    bool is_loader;
    StepInput input{};

    const StepInput* describe() noexcept {
      PythonMonitor& monitor = **events.link_;
      const StepInput* found =
          batch.is_none() ? nullptr : events.inspector_.describe(batch, monitor, !is_loader);
      if (found != nullptr) input = *found;
      if (!samples.is_none()) input.samples = whole_number(samples, monitor.dropped_values);
      if (!tokens.is_none()) input.tokens = whole_number(tokens, monitor.dropped_values);
      input.step = whole_number(step, monitor.dropped_values);
      input.epoch = epoch_number(epoch, monitor.dropped_values);
      return &input;
    }
  };

  std::shared_ptr<PythonMonitor*> link_;
  BatchInspector inspector_;
};

}  // namespace

void bind_events(py::module_& m) {
  py::class_<Events>(m, "Events", "Reports events of loaders and integrations to a monitor.")
      .def(py::init<PythonMonitor&>(), py::arg("monitor"))
      .def("on", &Events::on, py::arg("name"));
}

}  // namespace flopmeter
