// SPDX-License-Identifier: Apache-2.0
//
// Quantities in SI base units, as types that cannot be mixed up.  Counts (FLOPs, bytes) are exact
// integers; a utilization can only be formed from units that cancel.
#pragma once

#include <flopmeter/core/wide_int.h>

#include <compare>

namespace flopmeter {

struct Seconds {
  double value = 0;
  constexpr auto operator<=>(const Seconds&) const = default;
};

/// A number of floating-point operations: one multiply-add is two.
struct Flops {
  WideInt value = 0;
  constexpr auto operator<=>(const Flops&) const = default;
  constexpr Flops& operator+=(Flops other) {
    value += other.value;
    return *this;
  }
};

struct Bytes {
  WideInt value = 0;
  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes other) {
    value += other.value;
    return *this;
  }
};

struct FlopsPerSecond {
  double value = 0;
  constexpr auto operator<=>(const FlopsPerSecond&) const = default;
};

constexpr Flops operator+(Flops a, Flops b) {
  return {a.value + b.value};
}
constexpr Flops operator-(Flops a, Flops b) {
  return {a.value - b.value};
}
constexpr Flops operator*(WideInt times, Flops work) {
  return {times * work.value};
}
constexpr Bytes operator+(Bytes a, Bytes b) {
  return {a.value + b.value};
}
constexpr Bytes operator*(WideInt times, Bytes bytes) {
  return {times * bytes.value};
}
constexpr Seconds operator+(Seconds a, Seconds b) {
  return {a.value + b.value};
}
constexpr Seconds operator-(Seconds a, Seconds b) {
  return {a.value - b.value};
}
constexpr double operator/(Seconds a, Seconds b) {
  return a.value / b.value;
}
constexpr FlopsPerSecond operator/(Flops work, Seconds time) {
  return {static_cast<double>(work.value) / time.value};
}
constexpr Seconds operator/(Flops work, FlopsPerSecond rate) {
  return {static_cast<double>(work.value) / rate.value};
}
constexpr double operator/(FlopsPerSecond a, FlopsPerSecond b) {
  return a.value / b.value;
}

}  // namespace flopmeter
