// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a line of operator profiles: what is a profile survives a round trip.
#include <flopmeter/runstore/profile_stream.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopmeter;
  const auto profile = parse_op_profile({reinterpret_cast<const char*>(data), size});
  if (!profile) return 0;
  const std::string text = to_json(*profile);
  const auto again = parse_op_profile(text);
  if (!again || to_json(*again) != text) std::abort();
  return 0;
}
