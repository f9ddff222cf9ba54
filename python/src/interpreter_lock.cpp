// SPDX-License-Identifier: Apache-2.0
//
// Finds where threads wait for Python's interpreter lock, so that the monitor can detect whether
// the training thread does.  No interface of Python gives this address: a thread that has to wait
// for the lock shows it.
#include "bindings.h"

#include <flopmeter/core/interpreter_time.h>
#include <flopmeter/telemetry/loader_activity.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>

namespace py = pybind11;

namespace flopmeter {
namespace {

/// Call with the lock.  Takes a millisecond if processors are free; does nothing if it is known.
void find_interpreter_lock() {
  if (interpreter_lock_futex() != 0) return;
  constexpr auto interval = std::chrono::microseconds{200};
  constexpr auto longest = std::chrono::milliseconds{50};
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
  const auto end = std::chrono::steady_clock::now() + longest;
  std::uintptr_t seen = 0;
  int equal = 0;
  while (equal < equal_samples && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(interval);
    if (id == 0) continue;  // not started yet
    const auto futex = futex_of(id);
    if (!futex) break;
    equal = *futex != 0 && *futex == seen ? equal + 1 : 0;
    seen = *futex;
  }
  if (equal == equal_samples) interpreter_lock_futex() = seen;
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
