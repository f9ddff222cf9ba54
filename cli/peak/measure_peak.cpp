// SPDX-License-Identifier: Apache-2.0
#include "measure_peak.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

namespace flopmeter {
namespace {

using Clock = std::chrono::steady_clock;

std::optional<at::ScalarType> scalar_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp64:
      return at::kDouble;
    case Dtype::fp32:
      return at::kFloat;
    case Dtype::bf16:
      return at::kBFloat16;
    case Dtype::fp16:
      return at::kHalf;
    case Dtype::int8:
      return at::kChar;
    default:
      return std::nullopt;
  }
}

/// One product of [rows, width] and [width, width].
std::function<void()> product(at::ScalarType type, std::int64_t rows, std::int64_t width) {
  if (type == at::kChar) {
#if __has_include(<ATen/ops/_int_mm.h>)
    const at::Tensor a = at::randint(-8, 8, {rows, width}, at::TensorOptions(at::kChar));
    const at::Tensor b = at::randint(-8, 8, {width, width}, at::TensorOptions(at::kChar));
    return [a, b] { at::_int_mm(a, b); };
#else
    return {};
#endif
  }
  const at::Tensor a = at::randn({rows, width}).to(type);
  const at::Tensor b = at::randn({width, width}).to(type);
  at::Tensor out = at::empty({rows, width}, at::TensorOptions(type));
  return [a, b, out]() mutable { at::mm_out(out, a, b); };
}

double seconds(const std::function<void()>& work) {
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The median time of one product: at least three, and as many as fit the budget.
double median_time(const std::function<void()>& work, double budget) {
  work();  // code generation and page faults
  std::vector<double> times;
  double spent = 0;
  while (times.size() < 3 || (spent < budget && times.size() < 200)) {
    times.push_back(seconds(work));
    spent += times.back();
  }
  std::nth_element(
      times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

/// Rates of matmuls as small as those of small models and batches.
std::vector<ShapeRate> measure_shapes(Dtype dtype, at::ScalarType type, double budget) {
  std::vector<ShapeRate> shapes;
  for (const std::int64_t width : {64, 256, 1024}) {
    for (const std::int64_t rows : {32, 128, 512, 2048}) {
      const double time = median_time(product(type, rows, width), budget / 12);
      const auto flops = 2.0 * static_cast<double>(rows * width * width);
      shapes.push_back({dtype, rows, width, {flops / time}});
    }
  }
  return shapes;
}

}  // namespace

std::optional<MeasuredPeak> measure_peak(Dtype dtype,
                                         Seconds budget,
                                         const PeakProgress& progress) {
  const auto type = scalar_type(dtype);
  if (!type) return std::nullopt;
  constexpr std::array<std::int64_t, 5> sizes = {256, 512, 1024, 2048, 4096};
  MeasuredPeak best{.dtype = dtype};
  try {
    double spent = 0;
    for (const std::int64_t size : sizes) {
      const auto work = product(*type, size, size);
      if (!work) return std::nullopt;
      const auto begin = Clock::now();
      const double time = median_time(work, budget.value / std::size(sizes));
      spent += std::chrono::duration<double>(Clock::now() - begin).count();
      const FlopsPerSecond rate{2.0 * static_cast<double>(size * size * size) / time};
      progress(dtype, size, rate);
      if (rate > best.rate) best = {.dtype = dtype, .rate = rate, .size = size};
      // The next size takes eight times as long a product, three of them at least.
      if (spent + 8 * 4 * time > 2 * budget.value) break;
    }
    best.shapes = measure_shapes(dtype, *type, budget.value / 4);
  } catch (const c10::Error&) {
    if (best.size == 0) return std::nullopt;  // this build of torch has no such product
  }
  return best;
}

double measure_memory_speed(Seconds budget) {
  constexpr std::int64_t elements = std::int64_t{1} << 26;
  const at::Tensor from = at::ones({elements});
  at::Tensor to = at::empty({elements});
  const double time = median_time([&] { to.copy_(from); }, budget.value);
  return 2.0 * static_cast<double>(from.nbytes()) / time;
}

int torch_threads() {
  return at::get_num_threads();
}

std::string torch_version() {
  return TORCH_VERSION;
}

}  // namespace flopmeter
