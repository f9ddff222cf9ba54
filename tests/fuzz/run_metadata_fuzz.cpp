// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as run.json: an error or metadata that survive a round trip.
#include <flopmeter/runstore/run_metadata_json.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopmeter;
  const auto metadata = parse_run_metadata({reinterpret_cast<const char*>(data), size});
  if (!metadata) return 0;
  const std::string text = to_json(*metadata);
  const auto again = parse_run_metadata(text);
  if (!again || to_json(*again) != text) std::abort();
  return 0;
}
