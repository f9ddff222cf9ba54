// SPDX-License-Identifier: Apache-2.0
#include "screen.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace flopmeter::demo {

void LiveLine::show(double progress, std::string_view text) {
  constexpr int width = 24;
  const int filled = static_cast<int>(std::clamp(progress, 0.0, 1.0) * width);
  std::string bar;
  for (int i = 0; i < width; ++i) bar += i < filled ? "█" : "░";
  if (isatty(STDOUT_FILENO) != 0) {
    std::printf("\r\x1b[K  %s %.*s", bar.c_str(), static_cast<int>(text.size()), text.data());
  } else if (const int tenths = static_cast<int>(progress * 10); tenths != shown_tenths_) {
    shown_tenths_ = tenths;
    std::printf("  %s %.*s\n", bar.c_str(), static_cast<int>(text.size()), text.data());
  }
  std::fflush(stdout);
}

void LiveLine::end() {
  if (isatty(STDOUT_FILENO) != 0) std::puts("");
  shown_tenths_ = -1;
}

void print_line(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

}  // namespace flopmeter::demo
