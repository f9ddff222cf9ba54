// SPDX-License-Identifier: Apache-2.0
//
// flopmeter-peak: measures and stores the achievable matmul rate of this machine per dtype, and its
// memory bandwidth.
#include "measure_peak.h"

#include <flopmeter/core/text.h>
#include <flopmeter/telemetry/host_load.h>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace {

constexpr double most_disturbed = 0.1;  // of the time in which other load had the processor

/// Part of the time since the start in which other load kept this thread from running.
class Disturbance {
 public:
  [[nodiscard]] double share() {
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin_;
    const flopmeter::HostWait wait = load_.since_last(1);
    double waited = 0;
    for (const auto& part : {wait.run_queue, wait.throttled, wait.stolen})
      waited += part.value_or(flopmeter::Seconds{}).value;
    return waited / time.count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  flopmeter::HostLoad load_{gettid()};
};

}  // namespace

int main(int argc, char** argv) {
  using flopmeter::Dtype;
  CLI::App app{"Measure the matmul rate of this machine with torch, per dtype", "flopmeter-peak"};
  std::vector<std::string> names;
  double seconds = 4;
  bool json = false;
  bool keep = true;
  app.add_option("--dtype", names, "fp64, fp32, bf16, fp16, or int8 (all)");
  app.add_option("--seconds", seconds, "time per dtype")->check(CLI::PositiveNumber);
  app.add_flag("--json", json, "print one JSON object");
  bool busy = false;
  app.add_flag("!--no-cache", keep, "do not store the result for later runs");
  app.add_flag("--allow-busy", busy, "store the result even if other load disturbed it");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  std::vector<Dtype> dtypes;
  for (const std::string& name : names) {
    const auto dtype = flopmeter::parse_dtype(name);
    if (!dtype) {
      std::fprintf(stderr,
                   "flopmeter-peak: '%s' is not a dtype; use fp64, fp32, bf16, fp16, or int8\n",
                   name.c_str());
      return 2;
    }
    dtypes.push_back(*dtype);
  }
  if (dtypes.empty()) dtypes = {Dtype::fp64, Dtype::fp32, Dtype::bf16, Dtype::fp16, Dtype::int8};

  flopmeter::MeasuredMachine machine{.processor = flopmeter::processor_name(),
                                     .threads = flopmeter::torch_threads(),
                                     .torch = flopmeter::torch_version()};
  Disturbance disturbance;
  for (const Dtype dtype : dtypes) {
    const auto peak = flopmeter::measure_peak(dtype, {seconds}, [](Dtype d, auto size, auto rate) {
      std::fprintf(stderr,
                   "%-5s %5lld x %-5lld %9.2f GFLOP/s\n",
                   flopmeter::to_string(d).data(),
                   static_cast<long long>(size),
                   static_cast<long long>(size),
                   rate.value * 1e-9);
    });
    if (peak) {
      machine.peaks.push_back(*peak);
    } else {
      std::fprintf(stderr,
                   "%-5s not measured: this torch does not support it here\n",
                   flopmeter::to_string(dtype).data());
    }
  }
  machine.memory_bytes_per_second = flopmeter::measure_memory_speed({seconds / 4});
  const double disturbed = disturbance.share();
  if (disturbed > most_disturbed) {
    std::fprintf(
        stderr,
        "flopmeter-peak: other load had the processor for %s of the time: the peak is too "
        "low%s\n",
        flopmeter::percent(disturbed).c_str(),
        busy || !keep ? "" : ", not stored; measure on an idle machine or pass --allow-busy");
    keep = keep && busy;
  }
  if (keep) {
    const auto stored = flopmeter::store_measured_peaks(machine);
    if (!stored)
      std::fprintf(
          stderr, "flopmeter-peak: result not stored: %s\n", stored.error().message.c_str());
  }
  if (json) {
    std::puts(flopmeter::to_json(machine).c_str());
  } else {
    std::printf("%s, %d %s, torch %s\n",
                machine.processor.c_str(),
                machine.threads,
                machine.threads == 1 ? "thread" : "threads",
                machine.torch.c_str());
    for (const auto& peak : machine.peaks) {
      std::printf("%-5s %13s  (%lld x %lld)\n",
                  flopmeter::to_string(peak.dtype).data(),
                  (flopmeter::si(peak.rate.value) + "FLOP/s").c_str(),
                  static_cast<long long>(peak.size),
                  static_cast<long long>(peak.size));
    }
    std::printf("memory %12s\n", (flopmeter::si(*machine.memory_bytes_per_second) + "B/s").c_str());
  }
  return machine.peaks.empty() ? 1 : 0;
}
