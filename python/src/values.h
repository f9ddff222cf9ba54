// SPDX-License-Identifier: Apache-2.0
//
// Values of the user's program in C++.  Nothing here raises: wrong values are dropped and counted.
#pragma once

#include <flopmeter/monitor/monitor.h>

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace flopmeter {

/// A batch whose lengths and images are owned.
class OwnedBatch {
 public:
  /// From the fields of flopmeter.batch.Batch.  Values of a wrong type are dropped and counted.
  OwnedBatch() = default;
  OwnedBatch(pybind11::handle batch, Dtype flops_dtype, std::int64_t& dropped);

  [[nodiscard]] StepInput view() const noexcept {
    StepInput input = input_;
    input.sequence_lengths = lengths_;
    input.images = images_;
    return input;
  }
  StepInput& fields() noexcept { return input_; }

 private:
  StepInput input_;
  std::vector<std::int64_t> lengths_;
  std::vector<ImageGrid> images_;
};

/// Clears the error of a value or callback.  KeyboardInterrupt, SystemExit, and GeneratorExit
/// belong to the program: they are raised as soon as the main thread runs Python code.
void clear_error() noexcept;

/// The text of a str; empty if `value` is something else than that or not UTF-8.
std::optional<std::string_view> text_of(pybind11::handle value) noexcept;
/// An integer in 64 bits; empty and counted if `value` is something else than that or None.
std::optional<std::int64_t> whole_number(pybind11::handle value, std::int64_t& dropped) noexcept;
/// A finite or infinite float; empty and counted if `value` is something else than that or None.
std::optional<double> real_number(pybind11::handle value, std::int64_t& dropped) noexcept;
/// The number of an epoch, a fraction rounded down; empty and counted as above.
std::optional<std::int32_t> epoch_number(pybind11::handle value, std::int64_t& dropped) noexcept;

}  // namespace flopmeter
