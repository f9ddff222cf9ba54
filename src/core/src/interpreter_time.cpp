// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/interpreter_time.h>

namespace flopmeter {
namespace {

constinit std::atomic<std::int64_t> collecting_ns{0};

}  // namespace

std::atomic<std::int64_t>& garbage_collection_ns() {
  return collecting_ns;
}

}  // namespace flopmeter
