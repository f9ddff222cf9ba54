// SPDX-License-Identifier: Apache-2.0
#include "call_arguments.h"

#include <flopmeter/counting/adapter.h>

#include <algorithm>
#include <array>

namespace flopmeter {
namespace {

namespace py = pybind11;

/// torch.Tensor, and where its objects keep the address of the TensorImpl.
struct TensorLayout {
  PyTypeObject* tensor = nullptr;
  PyTypeObject* parameter = nullptr;
  std::size_t word = 0;  ///< 0: not found; the attribute _cdata is read instead

  TensorLayout() {
    const py::module_ torch = py::module_::import("torch");
    const auto type = [](const py::object& object) {
      return reinterpret_cast<PyTypeObject*>(object.inc_ref().ptr());  // NOLINT: never freed
    };
    tensor = type(torch.attr("Tensor"));
    parameter = type(torch.attr("nn").attr("Parameter"));
    const py::object first = torch.attr("empty")(2);
    const py::object second = torch.attr("empty")(3);
    constexpr std::array<std::size_t, 3> candidates = {2, 3, 4};
    for (const std::size_t candidate : candidates) {
      if (word == 0 && holds(first, candidate) && holds(second, candidate)) word = candidate;
    }
  }

  static bool holds(const py::object& object, std::size_t at) {
    return words(object.ptr())[at] == object.attr("_cdata").cast<std::uintptr_t>();
  }
  static const std::uintptr_t* words(PyObject* object) {
    return reinterpret_cast<const std::uintptr_t*>(object);  // NOLINT
  }

  [[nodiscard]] std::uintptr_t address(PyObject* object) const {
    if (word != 0) return words(object)[word];
    PyObject* address = PyObject_GetAttrString(object, "_cdata");
    if (address == nullptr) return 0;
    const std::size_t value = PyLong_AsSize_t(address);
    Py_DECREF(address);
    return value;
  }
};

const TensorLayout& layout() {
  static const TensorLayout& found = *new TensorLayout;
  return found;
}

bool has(PyObject* object, const char* attribute) {
  PyObject* value = PyObject_GetAttrString(object, attribute);
  PyErr_Clear();
  Py_XDECREF(value);
  return value != nullptr && value != Py_None;
}

FlopmeterArg integer(std::int64_t value) {
  FlopmeterArg arg{};
  arg.kind = FLOPMETER_INTEGER;
  arg.integer = value;
  return arg;
}

/// Enumerations of TransformerEngine: one bit for each word in the name of the value.
std::int64_t bits_of_name(PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return 0;
  const std::string_view value = text;
  constexpr auto words =
      std::to_array<std::string_view>({"CAUSAL", "BOTTOM_RIGHT", "PADDING", "THD"});
  std::int64_t bits = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (value.find(words[i]) != std::string_view::npos) bits |= std::int64_t{1} << i;
  }
  return bits;
}

}  // namespace

void CallArguments::set(std::size_t place, PyObject* object) noexcept {
  if (place >= most) return;
  for (; count_ <= place; ++count_) {
    args_[count_] = {};
    tensors_[count_] = nullptr;
  }
  if (object == Py_None) return;
  args_[place] = read(object);
  const FlopmeterArg& arg = args_[place];
  if (arg.kind == FLOPMETER_TENSOR && arg.rank == 1 && arg.dtype == FLOPMETER_OTHER_DTYPE &&
      Py_TYPE(object) == layout().tensor)
    tensors_[place] = attached_adapter()->find_starts(layout().address(object));
}

int CallArguments::quantized_dtype(PyObject* object) noexcept {
  if (has(object, "_fp4_dtype")) return FLOPMETER_FP4;
  if (!has(object, "_fp8_dtype")) return -1;
  if (std::string_view{Py_TYPE(object)->tp_name}.find("MXFP8") != std::string_view::npos)
    has_mxfp8_ = true;
  return FLOPMETER_FP8;
}

FlopmeterArg CallArguments::read_tensor(PyObject* tensor) noexcept {
  FlopmeterArg arg{};
  const std::uintptr_t address = layout().address(tensor);
  const std::int32_t device =
      address == 0 ? -1 : attached_adapter()->describe_tensor(address, &arg);
  if (device < 0) return {};
  if (device_ < 0) device_ = device;
  return arg;
}

FlopmeterArg CallArguments::read_extents(PyObject* sizes) {
  auto& values = values_.emplace_front();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sizes); ++i) {
    const long long value = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(sizes, i));
    if (value == -1 && PyErr_Occurred() != nullptr) return {};
    values.push_back(value);
  }
  FlopmeterArg arg{};
  arg.rank = static_cast<std::int32_t>(values.size());
  arg.values = values.data();
  return arg;
}

/// The logical extents of an fp4 tensor without row-wise data: its column-wise data is transposed,
/// with two elements in a byte.  Its method size() would print a warning.
FlopmeterArg CallArguments::read_columnwise(PyObject* object) {
  PyObject* data = PyObject_GetAttrString(object, "_columnwise_data");
  PyObject* sizes = data == nullptr ? nullptr : PyObject_CallMethod(data, "size", nullptr);
  Py_XDECREF(data);
  if (sizes == nullptr) return {};
  FlopmeterArg arg{};
  if (PyTuple_Check(sizes)) arg = read_extents(sizes);
  Py_DECREF(sizes);
  if (arg.rank > 0) {
    auto& values = values_.front();
    values.back() *= 2;
    std::rotate(values.begin(), values.begin() + 1, values.end());
  }
  return arg;
}

/// An object that is not a tensor and has a method size().
FlopmeterArg CallArguments::read_sized(PyObject* object) {
  const int dtype = quantized_dtype(object);
  FlopmeterArg arg{};
  if (dtype == FLOPMETER_FP4 && !has(object, "_rowwise_data")) {
    arg = read_columnwise(object);
  } else {
    PyObject* sizes = PyObject_CallMethod(object, "size", nullptr);
    if (sizes == nullptr) return {};
    if (PyTuple_Check(sizes) || PyList_Check(sizes)) arg = read_extents(sizes);
    Py_DECREF(sizes);
  }
  arg.dtype = static_cast<std::uint8_t>(dtype < 0 ? FLOPMETER_OTHER_DTYPE : dtype);
  arg.kind = FLOPMETER_TENSOR;
  return arg;
}

/// A grouped tensor of TransformerEngine: [groups, rows of all groups, columns].
FlopmeterArg CallArguments::read_grouped(PyObject* object) {
  const auto attribute = [&](const char* name) {
    PyObject* value = PyObject_GetAttrString(object, name);
    if (value == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(value);
  };
  const py::object shape = attribute("logical_shape");
  if (!PyTuple_Check(shape.ptr()) && !PyList_Check(shape.ptr())) return {};
  FlopmeterArg arg = read_extents(shape.ptr());
  if (arg.rank != 2) return {};
  auto& values = values_.front();
  values.insert(values.begin(), attribute("num_tensors").cast<std::int64_t>());
  arg.rank = 3;
  arg.values = values.data();
  arg.kind = FLOPMETER_TENSOR;
  py::object data = attribute("rowwise_data");
  if (data.is_none()) data = attribute("columnwise_data");
  arg.dtype = read(data.ptr()).dtype;
  const py::object quantizer = attribute("quantizer");
  const std::string_view kind = Py_TYPE(quantizer.ptr())->tp_name;
  const auto names = [&](const char* format) {
    return kind.find(format) != std::string_view::npos;
  };
  if (names("FP4")) arg.dtype = FLOPMETER_FP4;
  if (names("FP8") || names("Float8")) arg.dtype = FLOPMETER_FP8;
  if (names("MXFP8")) has_mxfp8_ = true;
  return arg;
}

FlopmeterArg CallArguments::read_sequence(PyObject* sequence) {
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(sequence);
  if (size == 0) return {};
  if (PyLong_Check(PySequence_Fast_GET_ITEM(sequence, 0))) {
    FlopmeterArg arg = read_extents(sequence);
    arg.kind = FLOPMETER_LIST;
    return arg;
  }
  auto& items = items_.emplace_front();
  for (Py_ssize_t i = 0; i < size; ++i)
    items.push_back(read(PySequence_Fast_GET_ITEM(sequence, i)));
  if (items[0].kind != FLOPMETER_TENSOR) return integer(1);
  FlopmeterArg arg{};
  arg.kind = FLOPMETER_TENSORS;
  arg.rank = static_cast<std::int32_t>(items.size());
  arg.items = items.data();
  return arg;
}

FlopmeterArg CallArguments::read(PyObject* object) noexcept try {
  const TensorLayout& known = layout();
  PyTypeObject* type = Py_TYPE(object);
  if (type == known.tensor || type == known.parameter) return read_tensor(object);
  if (object == Py_None || PyFloat_Check(object)) return {};
  if (PyLong_Check(object)) {
    const long long value = PyLong_AsLongLong(object);
    PyErr_Clear();
    return integer(value);
  }
  if (PyTuple_Check(object) || PyList_Check(object)) {
    const FlopmeterArg arg = read_sequence(object);
    if (PyErr_Occurred() == nullptr) return arg;
    PyErr_Clear();
    return {};
  }
  if (std::string_view{type->tp_name}.find("GroupedTensor") != std::string_view::npos)
    return read_grouped(object);
  if (PyType_IsSubtype(type, known.tensor) != 0) {
    FlopmeterArg arg = read_tensor(object);
    const int dtype = quantized_dtype(object);
    if (dtype >= 0) arg.dtype = static_cast<std::uint8_t>(dtype);
    return arg;
  }
  if (has(object, "size")) {
    const FlopmeterArg arg = read_sized(object);
    PyErr_Clear();
    return arg;
  }
  PyObject* name = PyObject_GetAttrString(object, "name");
  PyErr_Clear();
  const bool named = name != nullptr && PyUnicode_Check(name);
  const FlopmeterArg arg = integer(named ? bits_of_name(name) : 1);
  Py_XDECREF(name);
  PyErr_Clear();
  return arg;
} catch (...) {  // no memory
  PyErr_Clear();
  return {};
}

}  // namespace flopmeter
