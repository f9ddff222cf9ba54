// SPDX-License-Identifier: Apache-2.0
#include "batch_inspector.h"

namespace py = pybind11;

namespace flopmeter {
namespace {

constexpr int most_depth = 4;
constexpr std::size_t most_numbers = 512;

/// A value of a type with this number is described by its type: its content is not inspected.
std::int64_t identity(const void* pointer) noexcept {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(pointer));  // NOLINT
}

PyObject* loaded_tensor_type() noexcept {
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* torch = modules == nullptr ? nullptr : PyDict_GetItemString(modules, "torch");
  PyObject* type = torch == nullptr ? nullptr : PyObject_GetAttrString(torch, "Tensor");
  PyErr_Clear();
  return type;  // keeps its reference
}

}  // namespace

bool BatchInspector::add_tensor(PyObject* tensor) noexcept {
  PyObject* shape = PyObject_GetAttrString(tensor, "shape");
  PyObject* dtype = shape == nullptr ? nullptr : PyObject_GetAttrString(tensor, "dtype");
  const bool known = dtype != nullptr && PyTuple_Check(shape);
  if (known) {
    key_.push_back(identity(dtype));  // there is one object per dtype
    key_.push_back(PyTuple_GET_SIZE(shape));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); ++i) {
      PyObject* extent = PyTuple_GET_ITEM(shape, i);
      key_.push_back(PyLong_CheckExact(extent) ? PyLong_AsLongLong(extent) : -1);
    }
  }
  Py_XDECREF(shape);
  Py_XDECREF(dtype);
  PyErr_Clear();
  return known;
}

/// Whether the key describes the value completely, as far as an inspection goes.
bool BatchInspector::add_to_key(PyObject* value, int depth) noexcept {
  key_.push_back(identity(Py_TYPE(value)));
  if (key_.size() > most_numbers || depth > most_depth) return false;
  if (identity(Py_TYPE(value)) == identity(tensor_type_)) return add_tensor(value);
  if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) {
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(value);
    key_.push_back(size);
    for (Py_ssize_t i = 0; i < size; ++i) {
      if (!add_to_key(PySequence_Fast_GET_ITEM(value, i), depth + 1)) return false;
    }
    return true;
  }
  if (PyDict_CheckExact(value)) {
    key_.push_back(PyDict_GET_SIZE(value));
    Py_ssize_t at = 0;
    PyObject* name = nullptr;
    PyObject* item = nullptr;
    while (PyDict_Next(value, &at, &name, &item) != 0) {
      if (!PyUnicode_CheckExact(name)) return false;
      key_.push_back(PyObject_Hash(name));
      if (!add_to_key(item, depth + 1)) return false;
    }
    return true;
  }
  // Numbers and text do not describe a batch; other types have to be inspected each time.
  return value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) ||
         PyFloat_CheckExact(value) || PyUnicode_CheckExact(value);
}

const StepInput* BatchInspector::inspect(py::handle batch,
                                         PythonMonitor& monitor,
                                         bool is_only_source) {
  static py::object& inspect_batch =
      *new py::object{py::module_::import("flopmeter.batch").attr("inspect")};
  // The batch or None, and whether its shape is enough.
  const py::tuple found = inspect_batch(batch, is_only_source);
  current_ = OwnedBatch{found[0], monitor.dtype(), monitor.dropped_values};
  if (!key_.empty() && found[1].cast<bool>()) {
    if (known_.size() >= most_shapes) known_.clear();
    known_.insert_or_assign(key_, current_);
  }
  last_ = &current_;
  view_ = current_.view();
  return &view_;
}

const StepInput* BatchInspector::describe(py::handle batch,
                                          PythonMonitor& monitor,
                                          bool is_only_source) noexcept {
  try {
    if (tensor_type_ == nullptr) tensor_type_ = loaded_tensor_type();
    key_.clear();
    if (!add_to_key(batch.ptr(), 0)) key_.clear();
    if (!key_.empty()) {
      if (const auto at = known_.find(key_); at != known_.end()) {
        last_ = &at->second;
        view_ = last_->view();
        return &view_;
      }
    }
    return inspect(batch, monitor, is_only_source);
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_Exception)) error.restore();  // the program's own
  } catch (...) {
  }
  return nullptr;
}

}  // namespace flopmeter
