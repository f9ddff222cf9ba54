// SPDX-License-Identifier: Apache-2.0
//
// Finds where threads wait for Python's interpreter lock, so that the monitor can see whether the
// training thread does.  No interface of Python gives this address: a thread that has to wait for
// the lock shows it.
#include "bindings.h"

#include <flopmeter/core/interpreter_time.h>
#include <flopmeter/telemetry/loader_activity.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace py = pybind11;

namespace flopmeter {
namespace {

/// Call with the lock.  Takes a millisecond, once per process.
void find_interpreter_lock() {
  static bool tried = false;  // guarded by the lock
  if (std::exchange(tried, true)) return;
  constexpr auto interval = std::chrono::microseconds{200};
  constexpr int most_samples = 25;
  constexpr int equal_samples = 3;  // another wait on the way to the lock is shorter
  std::atomic<pid_t> id{0};
  std::thread waiter;
  try {
    waiter = std::thread{[&id] {
      id = gettid();
      PyGILState_Release(PyGILState_Ensure());
    }};
  } catch (const std::system_error&) {
    return;
  }
  std::uintptr_t found = 0;
  for (int i = 0, equal = 0; i < most_samples && equal < equal_samples; ++i) {
    std::this_thread::sleep_for(interval);
    const std::uintptr_t futex = id == 0 ? 0 : futex_of(id).value_or(0);
    equal = futex != 0 && futex == found ? equal + 1 : 0;
    found = futex;
  }
  interpreter_lock_futex() = found;
  const py::gil_scoped_release release;
  waiter.join();
}

}  // namespace

void bind_interpreter_lock(py::module_& m) {
  m.def("find_interpreter_lock",
        &find_interpreter_lock,
        "Finds where threads wait for the interpreter lock, for the monitor.");
}

}  // namespace flopmeter
