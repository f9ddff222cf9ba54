// SPDX-License-Identifier: Apache-2.0
#include "device_delay.h"

#include "context.h"
#include "device_clock.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace flopmeter::torch_adapter {
namespace {

/// Takes a device a few tenths of a millisecond.
constexpr std::int64_t matrix_size = 2048;
/// Fewer than a launch queue holds.
constexpr double most_matmuls = 256;
/// A device that computes while the host launches does not run late.
constexpr auto longest_launch = std::chrono::milliseconds(5);

/// While alive, this thread's operators are neither counted nor seen by profilers and autograd.
class Hidden {
 public:
  Hidden() : depth_(std::exchange(thread_context.depth, 1)) {}
  ~Hidden() { thread_context.depth = depth_; }
  Hidden(const Hidden&) = delete;
  Hidden& operator=(const Hidden&) = delete;
  Hidden(Hidden&&) = delete;
  Hidden& operator=(Hidden&&) = delete;

 private:
  int depth_;
  const c10::impl::ExcludeDispatchKeyGuard no_modes_{
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot})};
  const at::DisableRecordFunctionGuard no_profiler_;
  const at::AutoDispatchBelowADInplaceOrView no_autograd_;
};

struct Matmul {
  void* begin = nullptr;
  void* end = nullptr;
  double seconds = 0;  ///< 0: not known
};
Matmul matmul;

at::Tensor make_matrix() {
  return at::zeros({matrix_size, matrix_size}, at::device(known_training_device()));
}

}  // namespace

void prepare_device_delay() {
  if (matmul.begin != nullptr || device_is_captured()) return;
  const Hidden hidden;
  const at::Tensor matrix = make_matrix();
  at::Tensor product = at::mm(matrix, matrix);  // the first one may load its kernel
  const auto launched = std::chrono::steady_clock::now();
  std::int64_t stream = 0;
  if (record_device_event(&matmul.begin, &stream) != 1) return;
  at::mm_out(product, matrix, matrix);
  const bool is_late = std::chrono::steady_clock::now() - launched > longest_launch;
  if (!is_late) record_device_event(&matmul.end, &stream);
}

int delay_device(double seconds) {
  if (matmul.end != nullptr && matmul.seconds == 0 && is_device_event_reached(matmul.end))
    matmul.seconds = static_cast<double>(device_time_between(matmul.begin, matmul.end)) / 1e9;
  if (!(matmul.seconds > 0)) return 0;
  const Hidden hidden;
  const at::Tensor matrix = make_matrix();
  at::Tensor product = at::empty_like(matrix);
  const double count = std::clamp(std::ceil(seconds / matmul.seconds), 1.0, most_matmuls);
  for (int i = 0; i < static_cast<int>(count); ++i) at::mm_out(product, matrix, matrix);
  return 1;
}

}  // namespace flopmeter::torch_adapter
