// SPDX-License-Identifier: Apache-2.0
//
// ProgressLine: a line on the terminal that shows how far a long read is, from half a second on.
#pragma once

#include <flopmeter/core/text.h>

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

namespace flopmeter {

class ProgressLine {
 public:
  explicit ProgressLine(const std::string& what) : what_(printable(what)) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ProgressLine(ProgressLine&&) = delete;
  ProgressLine& operator=(ProgressLine&&) = delete;
  ~ProgressLine() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }

  void show(double share) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_ || isatty(STDERR_FILENO) == 0) return;
    next_ = now + std::chrono::milliseconds{100};
    shown_ = true;
    std::fprintf(stderr, "\r\x1b[Kreading %s: %s", what_.c_str(), percent(share).c_str());
  }

 private:
  std::string what_;
  std::chrono::steady_clock::time_point next_ =
      std::chrono::steady_clock::now() + std::chrono::milliseconds{500};
  bool shown_ = false;
};

}  // namespace flopmeter
