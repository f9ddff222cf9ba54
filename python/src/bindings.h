// SPDX-License-Identifier: Apache-2.0
//
// Errors and names for all files of the binding.
#pragma once

#include <flopmeter/core/dtype.h>
#include <flopmeter/core/result.h>

#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace flopmeter {

/// Throws the Error as the Python exception that fits it.
[[noreturn]] inline void raise(const Error& error) {
  const std::string text =
      error.parameter.empty() ? error.message : error.parameter + "= " + error.message;
  switch (error.code) {
    case ErrorCode::io_error:
      PyErr_SetString(PyExc_OSError, text.c_str());
      throw pybind11::error_already_set();
    case ErrorCode::unsupported:
      throw std::runtime_error(text);
    default:
      throw pybind11::value_error(text);
  }
}

inline void check(const Result<void>& result) {
  if (!result) raise(result.error());
}

template <class T>
T take(Result<T> result) {
  if (!result) raise(result.error());
  return *std::move(result);
}

inline Dtype dtype_named(const std::string& name) {
  if (const auto known = parse_dtype(name)) return *known;
  throw pybind11::value_error("dtype '" + name +
                              "': expected fp64, fp32, tf32, bf16, fp16, fp8, fp4 or int8");
}

void bind_estimate(pybind11::module_& m);
void bind_peaks(pybind11::module_& m);
void bind_options(pybind11::module_& m);
void bind_monitor(pybind11::module_& m);
void bind_monitor_config(pybind11::module_& m);
void bind_events(pybind11::module_& m);
void bind_records(pybind11::module_& m);
void bind_garbage_collection(pybind11::module_& m);
void bind_interpreter_lock(pybind11::module_& m);
void bind_hooks(pybind11::module_& m);
void bind_counting(pybind11::module_& m);
void bind_callables(pybind11::module_& m);
void bind_compiled_graphs(pybind11::module_& m);
void bind_python_adapter(pybind11::module_& m);
/// Whether a dispatch mode in Python counts, and no compiled adapter.
bool counts_in_python();

}  // namespace flopmeter
