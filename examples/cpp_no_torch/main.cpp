// SPDX-License-Identifier: Apache-2.0
//
// Monitors a C++ loop without torch. The loop specifies the FLOPs of its matmuls.
// Accepts all monitor options as flags or FLOPMETER_<NAME> variables, and --steps N, --milliseconds
// M, and
// --kill-after N (for crash tests).
#include <flopmeter/monitor/compat_options.h>
#include <flopmeter/monitor/monitor.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

namespace {

using flopmeter::Phase;

constexpr int size = 96;

/// 2 n^3 floating-point operations.
void multiply(const std::vector<float>& a, const std::vector<float>& b, std::vector<float>& c) {
  for (int i = 0; i < size; ++i) {
    for (int k = 0; k < size; ++k) {
      for (int j = 0; j < size; ++j) c[i * size + j] += a[i * size + k] * b[k * size + j];
    }
  }
}

long take_number(std::vector<std::string>& arguments, const std::string& flag, long fallback) {
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (arguments[i] == flag) return std::strtol(arguments[i + 1].c_str(), nullptr, 10);
  }
  return fallback;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments{argv + 1, argv + argc};
  for (const auto& argument : arguments) {
    if (argument == "--help") {
      std::printf("usage: monitor_example [--steps N] [--milliseconds M] [options]\n%s",
                  flopmeter::flags_help().c_str());
      return 0;
    }
  }
  flopmeter::Options options;
  auto rest = flopmeter::apply_arguments(options, arguments);
  if (!rest) {
    std::fprintf(stderr, "monitor_example: %s\n", rest.error().message.c_str());
    return 2;
  }
  if (const auto done = flopmeter::apply_environment(options, environ); !done) {
    std::fprintf(stderr, "monitor_example: %s\n", done.error().message.c_str());
    return 2;
  }
  const long steps = take_number(*rest, "--steps", 100);
  const long milliseconds = take_number(*rest, "--milliseconds", 0);
  const long kill_after = take_number(*rest, "--kill-after", -1);

  flopmeter::Connections connections;
  connections.peaks.device = "this machine";
  connections.peaks.source = "user";
  connections.peaks.set(flopmeter::Dtype::fp32, {50e9});
  auto monitor = flopmeter::Monitor::start(options, std::move(connections));
  if (!monitor) {
    std::fprintf(stderr, "monitor_example: %s\n", monitor.error().message.c_str());
    return 2;
  }

  std::vector<float> a(size * size, 1.0F);
  std::vector<float> b(size * size, 0.5F);
  std::vector<float> c(size * size);
  for (long i = 1; i <= steps; ++i) {
    monitor->begin_step({.samples = 8,
                         .tokens = 8192,
                         .step = i,
                         .flops = flopmeter::Flops{3LL * 2 * size * size * size},
                         .flops_dtype = flopmeter::Dtype::fp32});
    {
      auto data = monitor->phase(Phase::data);
      if (milliseconds > 0) std::this_thread::sleep_for(std::chrono::milliseconds{milliseconds});
    }
    {
      auto forward = monitor->phase(Phase::forward);
      multiply(a, b, c);
    }
    {
      auto backward = monitor->phase(Phase::backward);
      multiply(a, b, c);
      multiply(b, a, c);
    }
    monitor->end_step(
        {.loss = 1.0 / static_cast<double>(i), .grad_norm = 1.0, .learning_rate = 3e-4});
    if (i == kill_after) raise(SIGKILL);
  }
  monitor->finish();
  return c[0] > 0 ? 0 : 1;
}
