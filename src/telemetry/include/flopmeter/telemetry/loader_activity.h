// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace flopmeter {

/// Whether a thread, or one of the processes that it started (the workers of a data loader), is
/// running or ready to run at this moment; false where all of them wait for something, empty where
/// the kernel does not tell.  Some tens of microseconds: not for the training thread.
std::optional<bool> thread_or_children_run(pid_t thread, const std::string& root = "/proc");

}  // namespace flopmeter
