// SPDX-License-Identifier: Apache-2.0
//
// Consumer project: ideal time of half a second in a step of one second is an MFU of 0.5.
#include <flopmeter/core/utilization.h>

#include <cstdio>

int main() {
  flopmeter::PeakTable peaks;
  peaks.set(flopmeter::Dtype::bf16, {1e12});
  std::array<flopmeter::WideInt, flopmeter::dtype_count> flops{};
  flops[static_cast<std::size_t>(flopmeter::Dtype::bf16)] = 500'000'000'000;
  const auto mfu = flopmeter::Utilization{peaks}.utilization(flops, {1.0}, 1);
  if (!mfu) return 1;
  std::printf("mfu %.3f\n", *mfu);
  return *mfu == 0.5 ? 0 : 1;
}
