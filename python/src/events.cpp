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
constexpr auto event_names = std::to_array<std::string_view>({"loop_begin",
                                                              "loop_end",
                                                              "fetch_begin",
                                                              "fetch_end",
                                                              "forward_begin",
                                                              "forward_end",
                                                              "backward_begin",
                                                              "backward_end",
                                                              "optimizer_begin",
                                                              "optimizer_end",
                                                              "evaluation_begin",
                                                              "evaluation_end",
                                                              "checkpoint_begin",
                                                              "checkpoint_end",
                                                              "generation_begin",
                                                              "generation_end",
                                                              "batch_begin",
                                                              "batch_end",
                                                              "epoch_end"});

/// Events of wrapped loaders and integrations.
class Events {
 public:
  explicit Events(PythonMonitor& monitor) : link_(monitor.link()) {}

  /// Reports an event by name; returns what the reporter should do or log: names, mostly none.
  py::tuple on(const std::string& name,
               py::object batch,
               py::object step,
               py::object epoch,
               py::object loss,
               const std::string& policy,
               bool gradients) {
    const auto at = std::find(event_names.begin(), event_names.end(), name);
    if (*link_ == nullptr || at == event_names.end()) return py::tuple{};
    PythonMonitor& monitor = **link_;
    StepEvent event{.kind = static_cast<StepEventKind>(at - event_names.begin())};
    event.gradients = gradients;
    event.policy = policy == "per_batch" ? StepPolicy::per_batch : StepPolicy::per_optimizer_step;
    const StepOutcome outcome{.loss = real_number(loss, monitor.dropped_values)};
    event.outcome = &outcome;
    event.has_batch = event.kind == StepEventKind::fetch_end && !batch.is_none();
    Described described{*this, batch, step, epoch, event.has_batch};
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
    py::object& batch;
    py::object& step;
    py::object& epoch;
    bool is_loader;
    StepInput input{};

    const StepInput* describe() noexcept {
      PythonMonitor& monitor = **events.link_;
      const StepInput* found =
          batch.is_none() ? nullptr : events.inspector_.describe(batch, monitor, !is_loader);
      if (found != nullptr) input = *found;
      input.step = whole_number(step, monitor.dropped_values);
      if (const auto number = whole_number(epoch, monitor.dropped_values))
        input.epoch = static_cast<std::int32_t>(*number);
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
      .def("on",
           &Events::on,
           py::arg("name"),
           py::arg("batch") = py::none(),
           py::arg("step") = py::none(),
           py::arg("epoch") = py::none(),
           py::arg("loss") = py::none(),
           py::arg("policy") = "per_optimizer_step",
           py::arg("gradients") = true);
}

}  // namespace flopmeter
