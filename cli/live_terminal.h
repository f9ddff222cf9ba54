// SPDX-License-Identifier: Apache-2.0
//
// LiveTerminal: the screen of a command with changing output.  However the command ends, the
// terminal is restored.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string>
#include <vector>

namespace flopmeter {

/// One at a time in a process.
class LiveTerminal {
 public:
  LiveTerminal();
  ~LiveTerminal();
  LiveTerminal(const LiveTerminal&) = delete;
  LiveTerminal& operator=(const LiveTerminal&) = delete;
  LiveTerminal(LiveTerminal&&) = delete;
  LiveTerminal& operator=(LiveTerminal&&) = delete;

  /// Replaces the screen; false if the terminal is gone.
  bool show(const std::vector<std::string>& lines);

  enum class Event { time, resized, quit };
  /// Waits for a resize, the end (q, Ctrl-C, a signal), or the timeout.
  Event wait(double seconds);

 private:
  void enter();
  void leave();

  termios before_{};
  bool has_keys_ = false;
  std::string shown_;
};

}  // namespace flopmeter
