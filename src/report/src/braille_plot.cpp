// SPDX-License-Identifier: Apache-2.0
#include "braille_plot.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace flopmeter {
namespace {

/// A grid of dots, two by four of which make one braille character.
class Dots {
 public:
  Dots(std::size_t columns, std::size_t rows)
      : columns_(columns), rows_(rows), cells_(columns * rows) {}

  void set(std::size_t x, std::size_t y) {
    // Bits of U+2800 by column and row within the cell.
    constexpr std::array<std::array<unsigned, 4>, 2> bits = {
        {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};
    cells_[y / 4 * columns_ + x / 2] |= bits[x % 2][y % 4];
  }

  void stroke(std::size_t x, std::size_t y0, std::size_t y1) {
    for (std::size_t y = std::min(y0, y1); y <= std::max(y0, y1); ++y) set(x, y);
  }

  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> text(rows_);
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const unsigned dots = cells_[i];
      std::string& line = text[i / columns_];
      if (dots == 0) {
        line.push_back(' ');
      } else {  // U+2800 to U+28FF in UTF-8
        line.push_back('\xe2');
        line.push_back(static_cast<char>(0xa0U | dots >> 6U));
        line.push_back(static_cast<char>(0x80U | (dots & 0x3fU)));
      }
    }
    return text;
  }

 private:
  std::size_t columns_;
  std::size_t rows_;
  std::vector<unsigned> cells_;
};

}  // namespace

std::vector<std::string> braille_plot(const std::vector<PlotPoint>& points,
                                      double top,
                                      std::size_t columns,
                                      std::size_t rows) {
  Dots dots{columns, rows};
  if (points.empty() || !(top > 0) || columns == 0 || rows == 0) return dots.lines();
  const double span = points.back().x - points.front().x;
  const auto last_x = static_cast<double>(2 * columns - 1);
  const auto last_y = static_cast<double>(4 * rows - 1);
  const auto place = [&](double x) {
    return span > 0 ? static_cast<std::size_t>(std::lround((x - points.front().x) / span * last_x))
                    : 0;
  };
  const auto height = [&](double value) {
    return static_cast<std::size_t>(std::lround((1 - std::clamp(value / top, 0.0, 1.0)) * last_y));
  };
  const PlotPoint* before = nullptr;
  for (const PlotPoint& point : points) {
    const std::size_t x = place(point.x);
    dots.stroke(x, height(point.low), height(point.high));
    if (before != nullptr) {
      const std::size_t x0 = place(before->x);
      std::size_t y = height(before->mean);
      for (std::size_t i = x0 + 1; i <= x; ++i) {
        const double part = static_cast<double>(i - x0) / static_cast<double>(x - x0);
        const std::size_t next = height(before->mean + part * (point.mean - before->mean));
        // Half of a steep rise belongs to either column.
        const std::size_t middle = (y + next) / 2;
        dots.stroke(i - 1, y, middle);
        dots.stroke(i, middle, next);
        y = next;
      }
    }
    before = &point;
  }
  return dots.lines();
}

double round_top(double value) {
  if (!(value > 0)) return 1;
  const double unit = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0}) {
    if (value <= step * unit * (1 + 1e-9)) return step * unit;
  }
  return 10 * unit;
}

}  // namespace flopmeter
