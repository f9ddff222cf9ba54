// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/text.h>
#include <flopmeter/telemetry/hardware_counters.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace flopmeter {

Flops multiply_matrices() {
  constexpr std::size_t n = 192;
  constexpr int times = 8;
  const std::vector<float> a(n * n, 0.5F);
  const std::vector<float> b(n * n, 0.25F);
  std::vector<float> c(n * n, 0.0F);
  for (int t = 0; t < times; ++t) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < n; ++k) {
        for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
      }
    }
  }
  // Read the result, so that the compiler keeps the matmuls.
  const volatile float seen = c[n];
  static_cast<void>(seen);
  return Flops{static_cast<WideInt>(2 * n * n * n * times)};
}

Result<double> calibrate(HardwareCounters& counters, const KnownWork& work) {
  std::array<double, 3> factors{};
  for (double& factor : factors) {
    counters.settle();
    const auto before = counters.read();
    const auto known = static_cast<double>(work().value);
    counters.settle();
    const auto after = counters.read();
    if (!before || !after) return Error{ErrorCode::unsupported, "cannot read hardware counters"};
    factor = known / (after->flops - before->flops);
  }
  std::sort(factors.begin(), factors.end());
  const double factor = factors[1];
  if (factor >= 0.5 && factor <= 2) return factor;
  return Error{ErrorCode::unsupported,
               "no hardware counters: of known matrix products they saw " +
                   (std::isfinite(factor) ? fixed(100 / factor, 1) + " %" : "nothing")};
}

}  // namespace flopmeter
