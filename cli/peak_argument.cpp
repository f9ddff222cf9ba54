// SPDX-License-Identifier: Apache-2.0
#include "peak_argument.h"

#include "command.h"

#include <flopmeter/catalog/cpu_peak.h>
#include <flopmeter/catalog/devices.h>
#include <flopmeter/core/text.h>
#include <flopmeter/telemetry/cpu_info.h>
#include <flopmeter/telemetry/measured_peaks.h>

namespace flopmeter {
namespace {

Error wrong(std::string_view parameter, std::string message) {
  return {ErrorCode::invalid_argument, std::move(message), std::string{parameter}};
}

Result<PeakTable> device_table(const std::string& name, bool sparse, Dtype dtype) {
  const auto no_sparsity = [&](const std::string& device) {
    return wrong("sparse",
                 "does not apply: no sparse " + std::string{to_string(dtype)} +
                     " peak is known for " + device);
  };
  if (name == "cpu") {
    if (sparse) return no_sparsity("this machine's CPU");
    const auto cpu = read_cpu_info();
    if (!cpu) return cpu.error();
    return cpu_peak(*cpu);
  }
  const auto device = find_device(name);
  if (!device) return device.error();
  if (sparse && !(**device).sparse_doubles[static_cast<std::size_t>(dtype)])
    return no_sparsity((**device).name);
  return peaks_of(**device, sparse);
}

/// The table, if it has a peak for the dtype.
Result<std::optional<PeakTable>> with_peak(PeakTable table, Dtype dtype) {
  if (table.peak(dtype)) return std::optional{std::move(table)};
  std::string known;
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (table.peaks[i])
      known.append(known.empty() ? "" : ", ").append(to_string(static_cast<Dtype>(i)));
  }
  return wrong("dtype",
               std::string{to_string(dtype)} + " has no known peak on " + table.device +
                   (known.empty() ? "" : " (known: " + known + ")") +
                   "; set --peak, or measure it with `flopmeter peak`");
}

}  // namespace

void PeakArgument::add_options(Arguments& app) {
  auto* name =
      app.add_option(
             "--device", device, "device name, see `flopmeter devices`, or cpu for this machine")
          ->check(check_not_empty);
  app.add_option("--devices", devices, "number of devices")
      ->check(check_positive_integer)
      ->capture_default_str();
  app.add_option("--dtype", dtype, "dtype of the matmuls")->capture_default_str();
  app.add_flag("--sparse", sparse, "peak with 2:4 structured sparsity")->needs(name);
  app.add_option("--peak", peak, "TFLOP/s of one device, or measured (see `flopmeter peak`)");
}

Result<Dtype> PeakArgument::compute_dtype() const {
  if (const auto known = parse_dtype(dtype)) return *known;
  return wrong(
      "dtype",
      "is '" + printable(dtype) + "' but must be fp64, fp32, tf32, bf16, fp16, fp8, fp4, or int8");
}

Result<std::optional<PeakTable>> PeakArgument::table() const {
  const auto type = compute_dtype();
  if (!type) return type.error();
  if (peak == "measured") {
    auto measured = load_measured_peaks();
    if (!measured) return measured.error();
    return with_peak(*std::move(measured), *type);
  }
  if (!peak.empty()) {
    const auto tera = parse_double(peak);
    if (!tera || !(*tera >= 1e-6) || *tera > 1e9)
      return wrong("peak",
                   "is '" + printable(peak) + "' but must be TFLOP/s of one device, or measured");
    PeakTable user{.device = device, .source = "user"};
    user.set(*type, {*tera * 1e12});
    return std::optional{user};
  }
  if (device.empty()) return std::optional<PeakTable>{};
  auto table = device_table(device, sparse, *type);
  if (!table) return table.error();
  if (any_dtype) return std::optional{*std::move(table)};
  return with_peak(*std::move(table), *type);
}

}  // namespace flopmeter
