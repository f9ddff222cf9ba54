// SPDX-License-Identifier: Apache-2.0
//
// Time in Python's garbage collector, which stops the program.
#include "bindings.h"

#include <flopmeter/core/interpreter_time.h>

#include <chrono>
#include <string_view>
#include <utility>

namespace py = pybind11;

namespace flopmeter {
namespace {

/// Collections of young objects are short and frequent: only full ones are measured.
void on_garbage_collection(std::string_view phase, const py::dict& info) {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point begin;  // guarded by the GIL
  constexpr int full = 2;
  if (info["generation"].cast<int>() != full) return;
  if (phase == "start") {
    begin = Clock::now();
  } else if (begin != Clock::time_point{}) {
    const auto time = Clock::now() - std::exchange(begin, Clock::time_point{});
    garbage_collection_ns().fetch_add(
        std::chrono::duration_cast<std::chrono::nanoseconds>(time).count(),
        std::memory_order_relaxed);
  }
}

}  // namespace

void bind_garbage_collection(py::module_& m) {
  m.def("on_garbage_collection",
        &on_garbage_collection,
        "A callback for gc.callbacks: measures full collections.");
}

}  // namespace flopmeter
