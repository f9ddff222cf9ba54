// SPDX-License-Identifier: Apache-2.0
//
// Hooks: the callables that torch runs in each step.  They are C functions: a steady step runs no
// Python code from us.  The guard of this file is Hooks::call(): a failure in a hook is
// reported once to Python, which detaches the monitor, and never reaches the user's program.
#include "fetched_batches.h"
#include "function_modes.h"
#include "python_monitor.h"

#include <structmember.h>

#include <array>

namespace py = pybind11;

namespace flopmeter {
namespace {

int suspensions = 0;  ///< guarded by the GIL

/// The hooks of one monitor.  They may outlive it: then they do nothing.
class Hooks {
 public:
  /// `report(name, error)` is called for replies of the tracker and for failures; it must not hold
  /// the monitor.
  Hooks(PythonMonitor& monitor, py::object report)
      : link_(monitor.link()), report_(std::move(report)) {
    const py::module_ torch = py::module_::import("torch");
    tensor_type_ = torch.attr("Tensor");
    is_grad_enabled_ = torch.attr("is_grad_enabled");
    if (py::hasattr(torch, "compiler")) compiler_state_ = torch.attr("compiler").attr("__dict__");
  }

  enum class Place : std::uint8_t {
    none,
    forward_pre,
    forward_post,
    optimizer_pre,
    optimizer_post,
    replay,
    fetch
  };

  /// Runs one hook.  Null only for an exception of the user's own code.
  PyObject* call(Place place,
                 PyObject* original,
                 PyObject* const* args,
                 std::size_t count) noexcept {
    if (place == Place::fetch) return fetch(original, args, count);
    if (ready()) {
      const FunctionModes::Hidden hidden{modes_};
      if (place == Place::forward_pre && count >= 2)
        forward_begin(args[0], args[1], count > 2 ? args[2] : Py_None);
      if (place == Place::forward_post && count >= 3) forward_end(args[0], args[2]);
      if (place == Place::optimizer_pre)
        emit({.kind = StepEventKind::optimizer_begin, .closure = has_closure(args, count)});
      if (place == Place::optimizer_post && count >= 1) optimizer_end(args[0]);
      if (place == Place::replay) emit({.kind = StepEventKind::replay});
      if (PyErr_Occurred() != nullptr) fail(place);
      if (PyErr_Occurred() != nullptr) return nullptr;
    } else if (remove_later_ && (place == Place::forward_pre || place == Place::forward_post)) {
      remove_later_ = false;
      send("remove", Py_None);
    }
    Py_RETURN_NONE;
  }

  /// `backward`: the adapter's BackwardHook.
  void set_backward(const py::object& backward) {
    watch_ = backward.attr("watch");
    take_begun_ = backward.attr("take_begun");
  }
  void set_owner_check(py::object owns) { owns_ = std::move(owns); }
  /// The model is on a device: lengths are read from the batches of the loader.
  void read_fetched() noexcept { reads_fetched_ = true; }
  /// Permanently; the adapter's hook goes too.
  void detach() noexcept {
    active_ = false;
    watch_ = py::object{};
    take_begun_ = py::object{};
    owns_ = py::object{};
  }

 private:
  [[nodiscard]] bool ready() const noexcept {
    return active_ && *link_ != nullptr && suspensions == 0 && !is_compiling();
  }

  /// Tracers that run hooks without Dynamo, such as torch.export, set this flag.
  [[nodiscard]] bool is_compiling() const noexcept {
    return compiler_state_ &&
           PyDict_GetItemString(compiler_state_.ptr(), "_is_compiling_flag") == Py_True;
  }

  [[nodiscard]] bool gradients() const noexcept {
    PyObject* enabled = PyObject_CallNoArgs(is_grad_enabled_.ptr());
    Py_XDECREF(enabled);  // True and False are never freed
    return enabled == Py_True;
  }

  [[nodiscard]] static bool training(PyObject* model) noexcept {
    PyObject* mode = PyObject_GetAttrString(model, "training");
    Py_XDECREF(mode);
    return mode == Py_True;
  }

  void forward_begin(PyObject* model, PyObject* args, PyObject* kwargs) noexcept {
    StepEvent event{.kind = StepEventKind::forward_begin};
    event.training = training(model);
    event.gradients = gradients();
    PyObject* both[2] = {kwargs, args};
    Described described{*this, both};
    event.describe = [](void* context) -> const StepInput* {
      const auto& [hooks, parts] = *static_cast<Described*>(context);
      PyObject* batch = PyTuple_Pack(2, parts[0], parts[1]);
      if (batch == nullptr) return nullptr;
      const StepInput* input = hooks.inspector_.describe(batch, **hooks.link_, true);
      Py_DECREF(batch);
      return hooks.reads_fetched_ ? hooks.fetched_.next(input) : input;
    };
    event.backward_begun = [](void* context) {
      const Hooks& hooks = static_cast<Described*>(context)->hooks;
      PyObject* answer = hooks.take_begun_ ? PyObject_CallNoArgs(hooks.take_begun_.ptr()) : nullptr;
      Py_XDECREF(answer);
      return answer == Py_True;
    };
    event.context = &described;
    if (PyErr_Occurred() != nullptr) return;
    emit(event);
    if (reads_fetched_ && !(event.training && event.gradients)) fetched_.next(nullptr);
  }

  void forward_end(PyObject* model, PyObject* output) noexcept {
    StepEvent event{.kind = StepEventKind::forward_end};
    event.training = training(model);
    event.gradients = gradients();
    if (PyErr_Occurred() != nullptr) return;
    if ((*link_)->monitor().expects_backward(event)) event.backward = watch_output(output);
    if (PyErr_Occurred() == nullptr) emit(event);
  }

  /// Of step(self, closure): torch passes the arguments as a tuple and a dict.
  [[nodiscard]] static bool has_closure(PyObject* const* args, std::size_t count) noexcept {
    if (count < 3 || !PyTuple_Check(args[1]) || !PyDict_Check(args[2])) return false;
    PyObject* closure = PyTuple_GET_SIZE(args[1]) > 1 ? PyTuple_GET_ITEM(args[1], 1)
                                                      : PyDict_GetItemString(args[2], "closure");
    return closure != nullptr && closure != Py_None;
  }

  void optimizer_end(PyObject* optimizer) noexcept {
    StepEvent event{.kind = StepEventKind::optimizer_end};
    Described described{*this, &optimizer};
    event.owns = [](void* context) {
      const auto& [hooks, parts] = *static_cast<Described*>(context);
      if (!hooks.owns_) return true;
      PyObject* answer = PyObject_CallFunctionObjArgs(hooks.owns_.ptr(), parts[0], nullptr);
      Py_XDECREF(answer);
      return answer != Py_False;
    };
    event.context = &described;
    emit(event);
  }

  PyObject* fetch(PyObject* original, PyObject* const* args, std::size_t count) noexcept {
    const bool reported = ready();
    if (reported)
      emit({.kind = StepEventKind::fetch_begin,
            .loader = reinterpret_cast<std::uintptr_t>(count > 0 ? args[0] : nullptr)});  // NOLINT
    PyObject* batch = PyObject_Vectorcall(original, args, count, nullptr);
    if (!reported || !ready()) return batch;
    {
      const py::error_scope users;  // StopIteration, or an error of the user's data set
      emit({.kind = StepEventKind::fetch_end});
    }
    if (batch == nullptr || !reads_fetched_ || !ready()) return batch;
    {
      const FunctionModes::Hidden hidden{modes_};
      fetched_.add(args[0], batch, **link_);
    }
    if (PyErr_Occurred() == nullptr) return batch;
    Py_DECREF(batch);  // the program was interrupted
    return nullptr;
  }

  void emit(const StepEvent& event) noexcept {
    PythonMonitor& monitor = **link_;
    const StepReply reply = monitor.monitor().on(event);
    if (reply.step_ended) monitor.step_ended();
    if (reply.no_optimizer) send("no_optimizer", Py_None);
    if (reply.model_lost) send("model_lost", Py_None);
  }

  /// Asks the adapter to report when the gradient of the output is computed.
  BackwardReport watch_output(PyObject* output) noexcept {
    constexpr std::size_t most_tensors = 4;
    if (!watch_) return BackwardReport::unseen;
    std::array<PyObject*, most_tensors> tensors{};
    std::size_t found = 0;
    const auto add = [&](PyObject* value) {
      if (Py_TYPE(value) != reinterpret_cast<PyTypeObject*>(tensor_type_.ptr())) return;  // NOLINT
      PyObject* wanted = PyObject_GetAttrString(value, "requires_grad");
      Py_XDECREF(wanted);
      if (wanted == Py_True && found < most_tensors) tensors[found++] = value;
    };
    const auto add_values = [&](PyObject* dict) {
      Py_ssize_t at = 0;
      PyObject* value = nullptr;
      while (found < most_tensors && PyDict_Next(dict, &at, nullptr, &value) != 0) add(value);
    };
    add(output);
    if (found == 0 && (PyTuple_Check(output) || PyList_Check(output))) {
      for (Py_ssize_t i = 0; found < most_tensors && i < PySequence_Fast_GET_SIZE(output); ++i)
        add(PySequence_Fast_GET_ITEM(output, i));
    } else if (found == 0 && PyDict_Check(output)) {
      add_values(output);
    } else if (found == 0) {
      PyObject* attributes = PyObject_GenericGetDict(output, nullptr);  // runs no code of its class
      if (attributes != nullptr && PyDict_CheckExact(attributes)) add_values(attributes);
      Py_XDECREF(attributes);
      PyErr_Clear();
    }
    BackwardReport report = BackwardReport::none;
    for (std::size_t i = 0; i < found; ++i) {
      PyObject* address = PyObject_GetAttrString(tensors[i], "_cdata");
      PyObject* answer = address == nullptr
                             ? nullptr
                             : PyObject_CallFunctionObjArgs(watch_.ptr(), address, nullptr);
      Py_XDECREF(address);
      Py_XDECREF(answer);
      if (answer == nullptr) return BackwardReport::unseen;
      if (answer == Py_False) report = BackwardReport::unseen;
      if (answer == Py_True && report == BackwardReport::none) report = BackwardReport::reported;
    }
    return report;
  }

  /// Stops all hooks.  Torch does not allow that a hook of an optimizer is removed while it runs:
  /// then the hooks go with the next call of the model.
  void fail(Place place) noexcept {
    py::error_already_set error;
    if (!error.matches(PyExc_Exception)) {
      error.restore();  // such as KeyboardInterrupt: the program's
      return;
    }
    active_ = false;
    remove_later_ = place == Place::optimizer_pre || place == Place::optimizer_post;
    send(remove_later_ ? "failed_in_optimizer" : "failed", error.value().ptr());
  }

  void send(const char* name, PyObject* value) noexcept {
    PyObject* answer = PyObject_CallFunction(report_.ptr(), "sO", name, value);
    Py_XDECREF(answer);
    clear_error();
  }

  struct Described {
    Hooks& hooks;
    PyObject** parts;
  };

  std::shared_ptr<PythonMonitor*> link_;
  py::object report_;
  py::object tensor_type_;
  py::object is_grad_enabled_;
  FunctionModes modes_;
  py::object compiler_state_;
  py::object watch_;
  py::object take_begun_;
  py::object owns_;
  BatchInspector inspector_;
  FetchedBatches fetched_;
  bool reads_fetched_ = false;
  bool active_ = true;
  bool remove_later_ = false;
};

/// One callable.  Empty `hooks`: a copy of a model carries it, and it does nothing.
struct HookObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  std::shared_ptr<Hooks>* hooks;
  PyObject* original;
  Hooks::Place place;
};

PyTypeObject* hook_type = nullptr;

PyObject* call_hook(PyObject* self, PyObject* const* args, std::size_t flags, PyObject* /*names*/) {
  auto* hook = reinterpret_cast<HookObject*>(self);  // NOLINT
  if (hook->hooks == nullptr) Py_RETURN_NONE;
  const std::shared_ptr<Hooks> kept = *hook->hooks;
  PyObject* result = kept->call(
      hook->place, hook->original, args, static_cast<std::size_t>(PyVectorcall_NARGS(flags)));
  return result;
}

PyObject* new_hook(std::shared_ptr<Hooks> hooks, Hooks::Place place, PyObject* original) {
  auto* hook = PyObject_New(HookObject, hook_type);
  if (hook == nullptr) throw py::error_already_set();
  hook->vectorcall = call_hook;
  hook->hooks = hooks ? new std::shared_ptr<Hooks>(std::move(hooks)) : nullptr;
  hook->original = original;
  Py_XINCREF(original);
  hook->place = place;
  return reinterpret_cast<PyObject*>(hook);  // NOLINT
}

void free_hook(PyObject* self) {
  auto* hook = reinterpret_cast<HookObject*>(self);  // NOLINT
  PyTypeObject* type = Py_TYPE(self);
  delete hook->hooks;
  Py_XDECREF(hook->original);
  PyObject_Free(self);
  Py_DECREF(type);
}

/// As a class attribute, the hook of the loader is a method.
PyObject* bind_hook(PyObject* self, PyObject* instance, PyObject* /*type*/) {
  if (instance != nullptr && instance != Py_None) return PyMethod_New(self, instance);
  Py_INCREF(self);
  return self;
}

PyObject* copy_hook(PyObject* /*self*/, PyObject* /*memo*/) {
  return new_hook(nullptr, Hooks::Place::none, nullptr);
}

/// A saved model is loaded without flopmeter: a function that accepts any arguments and does
/// nothing.
PyObject* reduce_hook(PyObject* /*self*/, PyObject* /*unused*/) {
  PyObject* library = PyImport_ImportModule("contextlib");
  PyObject* context = library == nullptr ? nullptr : PyObject_GetAttrString(library, "nullcontext");
  Py_XDECREF(library);
  if (context == nullptr) return nullptr;
  PyObject* get = PyDict_GetItemString(PyEval_GetBuiltins(), "getattr");
  return Py_BuildValue("O(Ns)", get, context, "__exit__");
}

PyObject* make_hook(PyTypeObject* /*type*/, PyObject* /*args*/, PyObject* /*kwargs*/) {
  return new_hook(nullptr, Hooks::Place::none, nullptr);
}

void bind_hook_type(py::module_& m) {
  static std::array<PyMethodDef, 3> methods = {{
      {"__deepcopy__", copy_hook, METH_O, nullptr},
      {"__reduce__", reduce_hook, METH_NOARGS, nullptr},
      {nullptr, nullptr, 0, nullptr},
  }};
  static std::array<PyMemberDef, 2> members = {{
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(HookObject, vectorcall), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr},
  }};
  static std::array<PyType_Slot, 8> slots = {{
      {Py_tp_new, reinterpret_cast<void*>(make_hook)},           // NOLINT
      {Py_tp_dealloc, reinterpret_cast<void*>(free_hook)},       // NOLINT
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},  // NOLINT
      {Py_tp_descr_get, reinterpret_cast<void*>(bind_hook)},     // NOLINT
      {Py_tp_methods, methods.data()},
      {Py_tp_members, members.data()},
      {0, nullptr},
  }};
  static PyType_Spec spec = {
      "flopmeter._flopmeter.Hook",
      sizeof(HookObject),
      0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
      slots.data()};
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) throw py::error_already_set();
  hook_type = reinterpret_cast<PyTypeObject*>(type);  // NOLINT
  // TorchDynamo looks up __call__ and traces it: compiled code leaves the hooks out.  Calls from
  // Python use the slot above.
  py::dict scope;
  PyObject* defined = PyRun_String("def __call__(self, *args, **kwargs):\n    return None\n",
                                   Py_file_input,
                                   PyEval_GetBuiltins(),
                                   scope.ptr());
  if (defined == nullptr) throw py::error_already_set();
  Py_DECREF(defined);
  PyDict_SetItemString(hook_type->tp_dict, "__call__", scope["__call__"].ptr());
  PyType_Modified(hook_type);
  m.attr("Hook") = py::reinterpret_steal<py::object>(type);
}

}  // namespace

void bind_hooks(py::module_& m) {
  bind_hook_type(m);
  using Place = Hooks::Place;
  const auto hook = [](Place place) {
    return [place](const std::shared_ptr<Hooks>& self) {
      return py::reinterpret_steal<py::object>(new_hook(self, place, nullptr));
    };
  };
  py::class_<Hooks, std::shared_ptr<Hooks>>(m, "Hooks", "The hooks of one monitor.")
      .def(py::init<PythonMonitor&, py::object>(), py::arg("monitor"), py::arg("report"))
      .def("forward_pre", hook(Place::forward_pre))
      .def("forward_post", hook(Place::forward_post))
      .def("optimizer_pre", hook(Place::optimizer_pre))
      .def("optimizer_post", hook(Place::optimizer_post))
      .def("replay", hook(Place::replay))
      .def(
          "fetch",
          [](const std::shared_ptr<Hooks>& self, py::object original) {
            return py::reinterpret_steal<py::object>(new_hook(self, Place::fetch, original.ptr()));
          },
          py::arg("original"))
      .def("set_backward", &Hooks::set_backward, py::arg("backward"))
      .def("set_owner_check", &Hooks::set_owner_check, py::arg("owns"))
      .def("read_fetched", &Hooks::read_fetched)
      .def("detach", &Hooks::detach);
  m.def(
      "suspend_hooks", [](int change) { suspensions += change; }, py::arg("change"));
}

}  // namespace flopmeter
