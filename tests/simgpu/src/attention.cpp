// SPDX-License-Identifier: Apache-2.0
// Fused scaled-dot-product attention: one kernel forward, one backward. Setting `fused_attention`
// turns it off.
#include "costs.h"
#include "values.h"

#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

namespace simgpu {
namespace {

using at::Tensor;

/// Query-key pairs that are computed; a causal mask is aligned to the top left.
double pairs(const Tensor& query, const Tensor& key, bool causal) {
  const auto rows = static_cast<double>(query.size(-2)),
             columns = static_cast<double>(key.size(-2));
  if (!causal) return rows * columns;
  const double square = std::min(rows, columns);
  return square * (square + 1) / 2 + (rows - square) * columns;
}
/// FLOPs of one matmul over all pairs, per 2 operations and element of the head.
double product(const Tensor& query, const Tensor& key, bool causal) {
  return 2 * static_cast<double>(query.size(0) * query.size(1) * query.size(3)) *
         pairs(query, key, causal);
}
double total_bytes(std::initializer_list<Tensor> tensors) {
  double bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.defined() ? bytes_of(tensor) : 0;
  return bytes;
}
std::optional<Tensor> host_mask(const std::optional<Tensor>& mask) {
  return mask && mask->defined() ? std::optional(cpu_alias(*mask)) : std::nullopt;
}

using Forward =
    std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;
Forward forward(const Tensor& query,
                const Tensor& key,
                const Tensor& value,
                const std::optional<Tensor>& mask,
                double dropout,
                bool causal,
                bool,
                std::optional<double> scale) {
  // Memory order as flash attention writes it, so that merging the heads needs no copy.
  Tensor out =
      at::empty({query.size(0), query.size(2), query.size(1), value.size(3)}, query.options())
          .transpose(1, 2);
  Tensor logsumexp =
      at::empty({query.size(0), query.size(1), query.size(2)}, query.options().dtype(at::kFloat));
  const Tensor seed = at::empty({}, query.options().dtype(at::kLong)),
               offset = at::empty_like(seed);
  std::function<void()> values;
  if (values_are_on()) {
    values = [=,
              q = cpu_alias(query),
              k = cpu_alias(key),
              v = cpu_alias(value),
              m = host_mask(mask),
              o = cpu_alias(out),
              l = cpu_alias(logsumexp)] {
      const StraightTo cpu(c10::DispatchKey::CPU);
      const auto [y, sum] =
          at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, dropout, causal, m, scale);
      o.copy_(y);
      l.copy_(sum);
    };
  }
  device().launch(current_stream(),
                  roofline("fused_attention_forward",
                           2 * product(query, key, causal),
                           is_16_bit(query),
                           total_bytes({query, key, value, out, logsumexp})),
                  std::move(values));
  return {out, logsumexp, Tensor(), Tensor(), query.size(2), key.size(2), seed, offset, Tensor()};
}

/// 5 matmuls, forward has 2: the scores are recomputed.
std::tuple<Tensor, Tensor, Tensor, Tensor> backward(const Tensor& grad,
                                                    const Tensor& query,
                                                    const Tensor& key,
                                                    const Tensor& value,
                                                    const Tensor& mask,
                                                    std::array<bool, 4>,
                                                    const Tensor& out,
                                                    const Tensor& logsumexp,
                                                    const Tensor&,
                                                    const Tensor&,
                                                    c10::SymInt,
                                                    c10::SymInt,
                                                    double dropout,
                                                    bool causal,
                                                    const Tensor&,
                                                    const Tensor&,
                                                    std::optional<double> scale) {
  Tensor to_query = at::empty_like(query), to_key = at::empty_like(key),
         to_value = at::empty_like(value);
  std::function<void()> values;
  if (values_are_on()) {
    values = [=,
              g = cpu_alias(grad),
              q = cpu_alias(query),
              k = cpu_alias(key),
              v = cpu_alias(value),
              o = cpu_alias(out),
              l = cpu_alias(logsumexp),
              m = host_mask(mask),
              dq = cpu_alias(to_query),
              dk = cpu_alias(to_key),
              dv = cpu_alias(to_value)] {
      const StraightTo cpu(c10::DispatchKey::CPU);
      const auto [a, b, c] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          g, q, k, v, o, l, dropout, causal, m, scale);
      dq.copy_(a);
      dk.copy_(b);
      dv.copy_(c);
    };
  }
  device().launch(current_stream(),
                  roofline("fused_attention_backward",
                           5 * product(query, key, causal),
                           is_16_bit(query),
                           total_bytes({grad, query, key, value, out, to_query, to_key, to_value})),
                  std::move(values));
  return {to_query, to_key, to_value, mask.defined() ? at::empty_like(mask) : Tensor()};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_scaled_dot_product_fused_attention_overrideable", TORCH_FN(forward));
  library.impl("_scaled_dot_product_fused_attention_overrideable_backward", TORCH_FN(backward));
}

int64_t choose(const Tensor& query,
               const Tensor&,
               const Tensor&,
               const std::optional<Tensor>& mask,
               double dropout,
               bool,
               std::optional<double>,
               bool grouped) {
  // The math kernels handle what the CPU's flash attention does not support.
  const bool fused = settings().fused_attention != 0 && query.dim() == 4 && dropout == 0 &&
                     !grouped && !(mask && mask->requires_grad());
  return static_cast<int64_t>(fused ? at::SDPBackend::overrideable : at::SDPBackend::math);
}

}  // namespace
}  // namespace simgpu

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &simgpu::choose);
}  // namespace at::native
