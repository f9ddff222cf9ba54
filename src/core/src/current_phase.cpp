// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/current_phase.h>

namespace flopmeter {
namespace {

constinit std::atomic<Phase> phase_now{Phase::other};

}  // namespace

std::atomic<Phase>& current_phase() {
  return phase_now;
}

}  // namespace flopmeter
