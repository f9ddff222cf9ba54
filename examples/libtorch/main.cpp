// SPDX-License-Identifier: Apache-2.0
//
// Monitors a LibTorch training loop. FLOPs come from the operators that run.
#include <flopmeter/monitor/monitor.h>
#include <flopmeter/torch/op_counter.h>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include <cstdio>

int main() {
  flopmeter::TorchFlopCounter source;
  flopmeter::Connections connections;
  connections.source = &source;
  connections.peaks = {.device = "this machine", .source = "user"};
  connections.peaks.set(flopmeter::Dtype::fp32, {50e9});
  flopmeter::Options options;
  options.directory = "logs/libtorch";
  auto monitor = flopmeter::Monitor::start(options, std::move(connections));
  if (!monitor) {
    std::fprintf(stderr, "%s\n", monitor.error().message.c_str());
    return 1;
  }

  const auto x = torch::randn({32, 64});
  auto w = torch::randn({64, 64}).requires_grad_();
  for (int i = 0; i < 20; ++i) {
    auto step = monitor->step({.samples = 32});
    auto loss = x.mm(w).square().mean();
    loss.backward();
    const at::NoGradGuard no_grad;
    w -= 0.1 * w.grad();
    w.mutable_grad().reset();
  }
  monitor->finish();
  return 0;
}
