// SPDX-License-Identifier: Apache-2.0
#include "../catalog_command.h"

#include <flopmeter/catalog/devices.h>

namespace flopmeter {
namespace {

std::vector<CatalogRow> rows() {
  std::vector<CatalogRow> all;
  for (const Device& device : devices()) {
    CatalogRow row{device.name, {{"vendor", device.vendor}}};
    const auto add = [&](std::string what, std::optional<double> value) {
      row.facts.emplace_back(std::move(what), value ? CatalogFact{*value} : CatalogFact{""});
    };
    for (const Dtype dtype : {Dtype::fp64,
                              Dtype::fp32,
                              Dtype::tf32,
                              Dtype::bf16,
                              Dtype::fp16,
                              Dtype::fp8,
                              Dtype::fp4,
                              Dtype::int8}) {
      const auto peak = device.dense[static_cast<std::size_t>(dtype)];
      add(std::string{to_string(dtype)} + " TFLOP/s",
          peak ? std::optional{peak->value / 1e12} : std::nullopt);
    }
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp8}) {
      const auto rate = device.achievable[static_cast<std::size_t>(dtype)];
      add(std::string{to_string(dtype)} + " matmul",
          rate ? std::optional{rate->value / 1e12} : std::nullopt);
    }
    add("memory GB",
        device.memory ? std::optional{static_cast<double>(device.memory->value) / (1 << 30)}
                      : std::nullopt);
    const auto bandwidth = device.memory_bytes_per_second;
    add("GB/s", bandwidth ? std::optional{*bandwidth / 1e9} : std::nullopt);
    row.facts.emplace_back("unit", device.unit);
    row.facts.emplace_back("source", device.source);
    all.push_back(std::move(row));
  }
  return all;
}

/// Accepts every name that --device accepts, including those that drivers report.
Result<std::string> find(std::string_view name) {
  const auto device = find_device(name);
  if (!device) return device.error();
  return (*device)->name;
}

}  // namespace

extern constinit const Command command_devices{
    .name = "devices",
    .help = "Devices and their dense peaks per dtype",
    .order = 21,
    .set_up = [](Arguments& app) {
      return catalog_command(app, {"device", rows, find});
    }};

}  // namespace flopmeter
