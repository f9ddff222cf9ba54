// SPDX-License-Identifier: Apache-2.0
//
// flopmeter-demo: trains a small GPT twice, misconfigured and tuned, and shows the diagnosis.
#include "measure_peak.h"
#include "screen.h"
#include "training_run.h"

#include <flopmeter/analysis/diagnosis.h>
#include <flopmeter/analysis/run_evidence.h>
#include <flopmeter/core/text.h>

#include <CLI/CLI.hpp>

#include <cstdio>

namespace {

using namespace flopmeter;        // NOLINT(google-build-using-namespace)
using namespace flopmeter::demo;  // NOLINT(google-build-using-namespace)

/// Measured matmul rate of this machine, the denominator for a CPU.
PeakTable measured_peaks(double budget) {
  PeakTable table{.device = "this CPU",
                  .source = "measured: large matmuls through torch, just now"};
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
    const auto peak = measure_peak(dtype, {budget}, [](Dtype, auto, auto) {});
    if (peak) table.set(dtype, peak->rate);
  }
  table.memory_bytes_per_second = measure_memory_speed({budget / 4});
  return table;
}

std::string rate(const PeakTable& peaks, Dtype dtype) {
  const auto peak = peaks.peak(dtype);
  return std::string{to_string(dtype)} + " " + (peak ? si(peak->value) + "FLOP/s" : "n/a");
}

/// Prints the diagnosis of a finished run.
void explain(const std::string& program, const std::string& directory) {
  const auto run = open_run(directory);
  if (!run || (*run).ranks().empty()) return;
  const auto diagnosis = diagnose(read_evidence(*run));
  if (!diagnosis || (*diagnosis).findings.empty()) return;
  print_line("\nwhy the baseline was slow (" + program + " diagnose " + directory + "):");
  for (const Finding& finding : (*diagnosis).findings) {
    print_line("  " + headline(finding));
    print_line("    recommendation: " + finding.recommendation);
  }
}

void summary(const RunResult& bad,
             const RunResult& good,
             std::string_view peaks,
             const std::string& program,
             const std::string& directory) {
  print_line("");
  print_line("MFU " + percent(bad.mfu) + " -> " + percent(good.mfu) + " of the " +
             std::string{peaks} + " peak, " + grouped(static_cast<WideInt>(bad.tokens_per_second)) +
             " -> " + grouped(static_cast<WideInt>(good.tokens_per_second)) +
             " tokens/s, waiting for data " + percent(bad.data_share) + " -> " +
             percent(good.data_share) + " of the time");
  print_line("records, logs, and TensorBoard files: " + directory + "/{baseline,tuned}");
  print_line("changes by cause: " + program + " compare " + directory + "/baseline " + directory +
             "/tuned");
  print_line("HTML report: " + program + " report " + directory + "/baseline -o report.html");
  print_line("live dashboard: " + program + " serve " + directory);
  print_line("monitor your own training: " + program + " run -- python train.py");
}

int fail(const Error& error) {
  std::fprintf(stderr, "flopmeter-demo: %s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Train a small GPT twice, misconfigured and tuned", "flopmeter-demo"};
  std::string directory = "logs/demo";
  std::string program = "flopmeter";
  double seconds = 25;
  app.add_option("--dir", directory, "parent of the run directories")->capture_default_str();
  app.add_option("--seconds", seconds, "duration of each run in seconds")->capture_default_str();
  app.add_option("--program", program, "the program that the hints name")->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  print_line("measuring the peak of this machine ...");
  const PeakTable peaks = measured_peaks(seconds / 15);
  print_line("  " + rate(peaks, Dtype::fp32) + ", " + rate(peaks, Dtype::bf16));
  const auto fp32 = peaks.peak(Dtype::fp32);
  const auto bf16 = peaks.peak(Dtype::bf16);
  const bool use_bf16 = fp32 && bf16 && bf16->value > 1.5 * fp32->value;

  print_line("\nbaseline: a slow loader, one sequence per step, fp32");
  const auto bad = train({.name = "baseline",
                          .batch = 1,
                          .loader_delay = std::chrono::milliseconds{40},
                          .seconds = seconds,
                          .directory = directory + "/baseline",
                          .peaks = peaks});
  if (!bad) return fail(bad.error());
  print_line(std::string{"\ntuned: preloaded data, sixteen sequences per step, "} +
             (use_bf16 ? "bf16" : "still fp32, which is as fast as bf16 here"));
  const auto good = train({.name = "tuned",
                           .batch = 16,
                           .bf16 = use_bf16,
                           .seconds = seconds,
                           .directory = directory + "/tuned",
                           .peaks = peaks});
  if (!good) return fail(good.error());
  explain(program, directory + "/baseline");
  summary(*bad, *good, use_bf16 ? "fp32 and the bf16" : "fp32", program, directory);
  return 0;
}
