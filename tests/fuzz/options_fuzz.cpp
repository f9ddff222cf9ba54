// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as YAML options: one line of error, with the options unchanged, or options.
#include <flopmeter/monitor/options.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopmeter;
  Options options;
  options.directory = "before";
  const auto done = apply_yaml(options, {reinterpret_cast<const char*>(data), size});
  if (done) return 0;
  if (options.directory != "before") std::abort();
  const std::string& message = done.error().message;
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' '; };
  if (message.empty() || std::any_of(message.begin(), message.end(), is_control)) std::abort();
  return 0;
}
