// SPDX-License-Identifier: Apache-2.0
//
// Python functions whose calls do not pass the dispatcher: functions of extension modules, and
// front functions of Triton and CuTe kernels.  A CountedFunction replaces the function in its
// module: it calls the original and counts the call by the catalog's rule for the name.
#include "bindings.h"
#include "call_arguments.h"

#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/counting/adapter.h>
#include <flopmeter/counting/op_counter.h>

#include <pybind11/stl.h>
#include <structmember.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace flopmeter {
namespace {

namespace py = pybind11;

/// How arguments of a call become those of a rule.
struct Binding {
  const FlopmeterOp* op = nullptr;
  const FlopmeterOp* mxfp8 = nullptr;   ///< the row for microscaled operands, or `op`
  std::vector<std::string> parameters;  ///< names by position, if the function has names

  /// The rule's position of a positional argument, or -1.
  [[nodiscard]] int place(const OpRule* rule, std::size_t position) const {
    if (rule == nullptr || rule->place_of == nullptr || parameters.empty())
      return static_cast<int>(position);
    return position < parameters.size() ? rule->place_of(parameters[position]) : -1;
  }
  /// The rule's position of a keyword argument, or -1.
  [[nodiscard]] int place(const OpRule* rule, std::string_view keyword) const {
    if (rule != nullptr && rule->place_of != nullptr) return rule->place_of(keyword);
    const auto found = std::find(parameters.begin(), parameters.end(), keyword);
    return found == parameters.end() ? -1 : static_cast<int>(found - parameters.begin());
  }
};

struct FunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* original;
  Binding* binding;
};

PyTypeObject* function_type = nullptr;

FunctionObject& to_function(PyObject* self) {
  return *reinterpret_cast<FunctionObject*>(self);  // NOLINT
}

/// The layout for a call with `count` arguments, of which `positional` are in `args`.
const CallLayout* find_layout(const OpRule& rule,
                              std::size_t count,
                              PyObject* const* args,
                              std::size_t positional) {
  const auto found =
      std::find_if(rule.layouts.begin(), rule.layouts.end(), [&](const CallLayout& each) {
        const auto boolean = static_cast<std::size_t>(each.boolean);
        return static_cast<std::size_t>(each.arguments) == count &&
               (each.boolean < 0 || (boolean < positional && PyBool_Check(args[boolean])));
      });
  return found == rule.layouts.end() ? nullptr : &*found;
}

void read_call(const Binding& binding,
               PyObject* const* args,
               std::size_t positional,
               PyObject* names,
               CallArguments& into) noexcept {
  const OpRule* rule = catalog_rule(*binding.op);
  const std::size_t keywords =
      names == nullptr ? 0 : static_cast<std::size_t>(PyTuple_GET_SIZE(names));
  if (rule != nullptr && !rule->layouts.empty()) {
    // Without a layout for these arguments the call is counted as unsupported.
    const CallLayout* layout = find_layout(*rule, positional + keywords, args, positional);
    for (std::size_t i = 0; layout != nullptr && i < layout->places.size(); ++i) {
      const auto at = static_cast<std::size_t>(layout->places[i]);
      if (layout->places[i] >= 0 && at < positional) into.set(i, args[at]);
    }
    return;
  }
  for (std::size_t i = 0; i < positional; ++i) {
    const int place = binding.place(rule, i);
    if (place >= 0) into.set(static_cast<std::size_t>(place), args[i]);
  }
  for (std::size_t i = 0; i < keywords; ++i) {
    const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i)));
    const int place = name == nullptr ? -1 : binding.place(rule, std::string_view{name});
    if (place >= 0) into.set(static_cast<std::size_t>(place), args[positional + i]);
  }
  PyErr_Clear();
}

PyObject* call_function(PyObject* self, PyObject* const* args, std::size_t flags, PyObject* names) {
  const FunctionObject& function = to_function(self);
  const FlopmeterAdapter* adapter = attached_adapter();
  if (adapter == nullptr || adapter->begin_call(0) == 0)
    return PyObject_Vectorcall(function.original, args, flags, names);
  PyObject* result = PyObject_Vectorcall(function.original, args, flags, names);
  if (result != nullptr) {
    CallArguments read;
    const Binding& binding = *function.binding;
    read_call(binding, args, static_cast<std::size_t>(PyVectorcall_NARGS(flags)), names, read);
    FlopmeterArg output{};
    if (catalog_rule(*binding.op) == nullptr) {
      PyObject* first = result;
      if (PyTuple_Check(result) && PyTuple_GET_SIZE(result) > 0)
        first = PyTuple_GET_ITEM(result, 0);
      output = read.read(first);
    }
    adapter->count_call(read.has_mxfp8() ? binding.mxfp8 : binding.op,
                        read.data(),
                        read.size(),
                        read.tensors(),
                        &output,
                        read.device(),
                        FLOPMETER_CURRENT_PASS,
                        FLOPMETER_CURRENT_MODULE);
  }
  adapter->end_call();
  return result;
}

/// Attributes of the original are those of the function; new ones stay on the original.
PyObject* get_attribute(PyObject* self, PyObject* name) {
  if (PyUnicode_CompareWithASCIIString(name, "__doc__") == 0)  // a type also has one
    return PyObject_GetAttr(to_function(self).original, name);
  PyObject* own = PyObject_GenericGetAttr(self, name);
  if (own != nullptr || PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return own;
  PyErr_Clear();
  return PyObject_GetAttr(to_function(self).original, name);
}
int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  return value == nullptr ? PyObject_DelAttr(to_function(self).original, name)
                          : PyObject_SetAttr(to_function(self).original, name, value);
}

PyObject* describe(PyObject* self) {
  return PyObject_Repr(to_function(self).original);
}

/// Saved by name, as functions are: another process finds its own.
PyObject* reduce(PyObject* self, PyObject* /*unused*/) {
  return PyObject_GetAttrString(to_function(self).original, "__qualname__");
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(to_function(self).original);
  Py_VISIT(Py_TYPE(self));
  return 0;
}
int clear(PyObject* self) {
  Py_CLEAR(to_function(self).original);
  return 0;
}
void free_function(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_XDECREF(to_function(self).original);
  delete to_function(self).binding;
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

/// A function that was a method of a class stays one.
PyObject* bind_function(PyObject* self, PyObject* instance, PyObject* /*type*/) {
  if (instance != nullptr && instance != Py_None) return PyMethod_New(self, instance);
  Py_INCREF(self);
  return self;
}

PyObject* wrapped(PyObject* self, void* /*closure*/) {
  PyObject* original = to_function(self).original;
  Py_INCREF(original);
  return original;
}
/// Makes TorchDynamo call the function without tracing it.
PyObject* dynamo_disable(PyObject* /*self*/, void* /*closure*/) {
  Py_RETURN_TRUE;
}

void bind_type(py::module_& m) {
  static std::array<PyMethodDef, 2> methods = {{
      {"__reduce__", reduce, METH_NOARGS, nullptr},
      {nullptr, nullptr, 0, nullptr},
  }};
  static std::array<PyGetSetDef, 3> properties = {{
      {"__wrapped__", wrapped, nullptr, nullptr, nullptr},
      {"_torchdynamo_disable", dynamo_disable, nullptr, nullptr, nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr},
  }};
  static std::array<PyMemberDef, 2> members = {{
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObject, vectorcall), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr},
  }};
  static std::array<PyType_Slot, 12> slots = {{
      {Py_tp_dealloc, reinterpret_cast<void*>(free_function)},    // NOLINT
      {Py_tp_traverse, reinterpret_cast<void*>(traverse)},        // NOLINT
      {Py_tp_clear, reinterpret_cast<void*>(clear)},              // NOLINT
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},   // NOLINT
      {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},   // NOLINT
      {Py_tp_setattro, reinterpret_cast<void*>(set_attribute)},   // NOLINT
      {Py_tp_repr, reinterpret_cast<void*>(describe)},            // NOLINT
      {Py_tp_descr_get, reinterpret_cast<void*>(bind_function)},  // NOLINT
      {Py_tp_methods, methods.data()},
      {Py_tp_getset, properties.data()},
      {Py_tp_members, members.data()},
      {0, nullptr},
  }};
  static PyType_Spec spec = {"flopmeter._flopmeter.CountedFunction",
                             sizeof(FunctionObject),
                             0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                                 Py_TPFLAGS_METHOD_DESCRIPTOR,
                             slots.data()};
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) throw py::error_already_set();
  function_type = reinterpret_cast<PyTypeObject*>(type);  // NOLINT
  m.attr("CountedFunction") = py::reinterpret_steal<py::object>(type);
}

py::object counted_function(const std::string& name,
                            const py::object& original,
                            std::vector<std::string> parameters) {
  const FlopmeterOp* op = counted_op(name);
  if (op == nullptr) return original;
  auto* made = PyObject_GC_New(FunctionObject, function_type);
  if (made == nullptr) throw py::error_already_set();
  made->vectorcall = call_function;
  made->original = py::object(original).release().ptr();
  const std::string mxfp8 = name + ".mxfp8";
  const OpRule* own_row = find_op_rule(mxfp8);
  made->binding =
      new Binding{.op = op,
                  .mxfp8 = own_row != nullptr && own_row->name == mxfp8 ? counted_op(mxfp8) : op,
                  .parameters = std::move(parameters)};
  auto* object = reinterpret_cast<PyObject*>(made);  // NOLINT
  PyObject_GC_Track(object);
  return py::reinterpret_steal<py::object>(object);
}

}  // namespace

void bind_callables(py::module_& m) {
  bind_type(m);
  m.def("counted_function",
        counted_function,
        py::arg("name"),
        py::arg("original"),
        py::arg("parameters"),
        "The function as an object that counts its calls by the rule for `name`.");
  m.def(
      "python_functions",
      [] {
        std::vector<std::string> names;
        for (const OpFamily* family : op_families()) {
          for (const OpRule& rule : family->rules) {
            if (rule.python) names.emplace_back(rule.name);
          }
        }
        return names;
      },
      "Names of the Python functions in the catalog: module, '::', and attribute.");
}

}  // namespace flopmeter
