// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace flopmeter {

/// The torch function modes of the program.
class FunctionModes {
 public:
  FunctionModes() {
    const auto torch = pybind11::module_::import("torch._C");
    count_ = pybind11::getattr(torch, "_len_torch_function_stack", pybind11::object{});
    disable_ = torch.attr("DisableTorchFunction");
  }

  /// While it lives, the modes do not see our reads of tensors.
  class Hidden {
   public:
    explicit Hidden(const FunctionModes& modes) noexcept {
      PyObject* count = modes.count_ ? PyObject_CallNoArgs(modes.count_.ptr()) : nullptr;
      if (count != nullptr && PyObject_IsTrue(count) == 1)
        guard_ = PyObject_CallNoArgs(modes.disable_.ptr());
      if (guard_ != nullptr) Py_XDECREF(PyObject_CallMethod(guard_, "__enter__", nullptr));
      Py_XDECREF(count);
      PyErr_Clear();
    }
    Hidden(const Hidden&) = delete;
    Hidden& operator=(const Hidden&) = delete;
    Hidden(Hidden&&) = delete;
    Hidden& operator=(Hidden&&) = delete;
    ~Hidden() {
      if (guard_ == nullptr) return;
      const pybind11::error_scope kept;
      Py_XDECREF(PyObject_CallMethod(guard_, "__exit__", "OOO", Py_None, Py_None, Py_None));
      Py_DECREF(guard_);
      PyErr_Clear();
    }

   private:
    PyObject* guard_ = nullptr;
  };

 private:
  pybind11::object count_;  ///< null before torch 2.0
  pybind11::object disable_;
};

}  // namespace flopmeter
