// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/compilations.h>
#include <flopmeter/core/current_phase.h>

namespace flopmeter {
namespace {

constinit std::atomic<Phase> phase_now{Phase::other};

}  // namespace

std::atomic<std::uint64_t>& compilations() {
  static std::atomic<std::uint64_t> count{0};
  return count;
}

std::atomic<Phase>& current_phase() {
  return phase_now;
}

}  // namespace flopmeter
