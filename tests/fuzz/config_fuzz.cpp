// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes as a config.json give an error or an estimate, never a crash.
#include <flopmeter/catalog/estimate.h>
#include <flopmeter/catalog/model_family.h>

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopmeter;
  const auto config = Config::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!config) return 0;
  const auto model = build_model(*config);
  if (!model) return 0;
  const auto result = estimate(
      *model, {.batch = Batch::uniform(2, 64), .training = {.recompute = Recompute::full}});
  if (!result) return 0;
  std::string text;
  JsonWriter json{text};
  write_json(json, *result);
  return 0;
}
