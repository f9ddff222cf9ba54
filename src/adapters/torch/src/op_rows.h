// SPDX-License-Identifier: Apache-2.0
//
// The rows of an operator profile while it is collected.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

namespace flopmeter::torch_adapter {

/// Name, kind, shape, log2 of the elements, in backward, recompute, across devices, phase.
using RowKey =
    std::tuple<std::string, std::uint8_t, std::string, int, bool, bool, bool, std::uint8_t>;

struct RowSum {
  std::uint64_t calls = 0;
  double self = 0;
  std::uint64_t flops = 0;
  std::uint64_t bytes = 0;

  void add(const RowSum& other) {
    calls += other.calls;
    self += other.self;
    flops += other.flops;
    bytes += other.bytes;
  }
};

}  // namespace flopmeter::torch_adapter
