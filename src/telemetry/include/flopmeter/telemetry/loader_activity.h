// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace flopmeter {

/// Whether a thread or one of its child processes (loader workers) runs or is runnable; false if
/// all wait, empty if the kernel does not expose this. Takes tens of microseconds: not for the
/// training thread.
std::optional<bool> thread_or_children_run(pid_t thread, const std::string& root = "/proc");

/// The address of the futex that a thread of this process waits for; 0 if it waits for none, empty
/// if the kernel does not expose this.  Takes tens of microseconds: not for the training thread.
std::optional<std::uintptr_t> futex_of(pid_t thread, const std::string& root = "/proc");

}  // namespace flopmeter
