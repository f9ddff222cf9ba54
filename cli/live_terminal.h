// SPDX-License-Identifier: Apache-2.0
//
// LiveTerminal: the screen while a command shows something that changes.  Whatever ends the
// command, the terminal is left as it was found.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string>
#include <vector>

namespace flopmeter {

/// Cells of the terminal on standard output; where it is none, COLUMNS or 80, and no rows.
struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 0;
};
TerminalSize terminal_size();

/// One at a time in a process.
class LiveTerminal {
 public:
  LiveTerminal();
  ~LiveTerminal();
  LiveTerminal(const LiveTerminal&) = delete;
  LiveTerminal& operator=(const LiveTerminal&) = delete;
  LiveTerminal(LiveTerminal&&) = delete;
  LiveTerminal& operator=(LiveTerminal&&) = delete;

  /// Replaces what is on screen; false where the terminal is gone.
  bool show(const std::vector<std::string>& lines);

  enum class Event { time, resized, quit };
  /// Waits for a new size, the end (q, Ctrl-C, a signal) or until the time is up.
  Event wait(double seconds);

 private:
  void enter();
  void leave();

  termios before_{};
  bool has_keys_ = false;
  std::string shown_;
};

}  // namespace flopmeter
