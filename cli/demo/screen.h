// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace flopmeter::demo {

/// One line that is written over on a terminal; elsewhere only a tenth of the updates are shown,
/// each on its own.
class LiveLine {
 public:
  void show(double progress, std::string_view text);
  void end();

 private:
  int shown_tenths_ = -1;
};

void print_line(const std::string& line);

}  // namespace flopmeter::demo
