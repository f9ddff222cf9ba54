// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace py = pybind11;

namespace flopmeter {

void clear_error() noexcept {
  if (PyErr_Occurred() == nullptr) return;
  if (PyErr_ExceptionMatches(PyExc_Exception) != 0) return PyErr_Clear();
  try {
    auto error = std::make_unique<py::error_already_set>();
    const py::module_ threading = py::module_::import("threading");
    if (!threading.attr("current_thread")().is(threading.attr("main_thread")())) return;
    const auto raise = [](void* passed) {
      std::unique_ptr<py::error_already_set> {
        static_cast<py::error_already_set*>(passed)
        } -> restore();
      return -1;
    };
    if (Py_AddPendingCall(raise, error.get()) == 0) static_cast<void>(error.release());
  } catch (...) {  // no memory
    PyErr_Clear();
  }
}

std::optional<std::string_view> text_of(py::handle value) noexcept {
  Py_ssize_t size = 0;
  const char* text =
      PyUnicode_Check(value.ptr()) ? PyUnicode_AsUTF8AndSize(value.ptr(), &size) : nullptr;
  if (text != nullptr) return std::string_view{text, static_cast<std::size_t>(size)};
  PyErr_Clear();
  return std::nullopt;
}

std::optional<std::int64_t> whole_number(py::handle value, std::int64_t& dropped) noexcept {
  if (!value || value.is_none()) return std::nullopt;
  if (PyFloat_CheckExact(value.ptr())) {
    const double number = PyFloat_AS_DOUBLE(value.ptr());
    if (std::abs(number) < 9e18 && number == std::floor(number))
      return static_cast<std::int64_t>(number);
    ++dropped;
    return std::nullopt;
  }
  PyObject* index = PyNumber_Index(value.ptr());
  int overflow = 0;
  const std::int64_t number =
      index == nullptr ? -1 : PyLong_AsLongLongAndOverflow(index, &overflow);
  Py_XDECREF(index);
  if (index != nullptr && overflow == 0) return number;
  clear_error();
  ++dropped;
  return std::nullopt;
}

std::optional<double> real_number(py::handle value, std::int64_t& dropped) noexcept {
  if (!value || value.is_none()) return std::nullopt;
  const double number = PyFloat_AsDouble(value.ptr());
  if (number != -1.0 || PyErr_Occurred() == nullptr) return number;
  clear_error();
  ++dropped;
  return std::nullopt;
}

std::optional<std::int32_t> epoch_number(py::handle value, std::int64_t& dropped) noexcept {
  const auto number = real_number(value, dropped);
  if (!number) return std::nullopt;
  if (*number >= 0 && *number < INT32_MAX) return static_cast<std::int32_t>(*number);
  ++dropped;
  return std::nullopt;
}

OwnedBatch::OwnedBatch(py::handle batch, Dtype flops_dtype, std::int64_t& dropped) {
  if (batch.is_none() || !PyTuple_Check(batch.ptr()) || PyTuple_GET_SIZE(batch.ptr()) != 7) return;
  const auto field = [&](Py_ssize_t i) { return py::handle{PyTuple_GET_ITEM(batch.ptr(), i)}; };
  input_.samples = whole_number(field(0), dropped);
  input_.tokens = whole_number(field(1), dropped);
  if (PyList_CheckExact(field(2).ptr())) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(field(2).ptr()); ++i) {
      if (const auto length = whole_number(PyList_GET_ITEM(field(2).ptr(), i), dropped))
        lengths_.push_back(*length);
    }
  }
  input_.padded_length = whole_number(field(3), dropped).value_or(0);
  if (PyList_CheckExact(field(4).ptr())) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(field(4).ptr()); ++i) {
      PyObject* grid = PyList_GET_ITEM(field(4).ptr(), i);
      if (!PyTuple_CheckExact(grid) || PyTuple_GET_SIZE(grid) != 3) continue;
      const auto side = [&](Py_ssize_t k) {
        return std::clamp<std::int64_t>(
            whole_number(PyTuple_GET_ITEM(grid, k), dropped).value_or(0), 0, INT32_MAX);
      };
      images_.push_back({.t = side(0), .h = side(1), .w = side(2)});
    }
  }
  input_.visual_tokens = whole_number(field(5), dropped);
  if (const auto flops = whole_number(field(6), dropped)) input_.flops = Flops{*flops};
  input_.flops_dtype = flops_dtype;
}

}  // namespace flopmeter
