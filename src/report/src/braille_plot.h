// SPDX-License-Identifier: Apache-2.0
//
// A curve drawn with braille characters: two by four dots a cell.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace flopmeter {

/// Values at one place of the horizontal axis.
struct PlotPoint {
  double x = 0;
  double low = 0;
  double mean = 0;
  double high = 0;
};

/// `rows` lines of `columns` cells, top first: each point as a stroke from low to high, the means
/// joined.  The vertical axis runs from 0 to `top`; points are in order of x.
std::vector<std::string> braille_plot(const std::vector<PlotPoint>& points,
                                      double top,
                                      std::size_t columns,
                                      std::size_t rows);

/// The least round number that is not below `value`.
double round_top(double value);

}  // namespace flopmeter
