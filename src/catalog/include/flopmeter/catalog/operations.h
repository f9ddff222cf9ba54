// SPDX-License-Identifier: Apache-2.0
//
// The cost model: FLOPs of operations with given shapes.  The live op stream, the estimate, and the
// trace reader map their input to these operations, so that their counts cannot differ.  A
// multiply-add is two FLOPs; softmax, norms, and other elementwise work cost nothing.
#pragma once

#include <flopmeter/core/dtype.h>
#include <flopmeter/core/units.h>

#include <cstdint>
#include <span>

namespace flopmeter {

/// `batch` matmuls of an m x k and a k x n matrix.
struct Matmul {
  WideInt batch = 1;
  WideInt m = 0;
  WideInt n = 0;
  WideInt k = 0;
};

/// Forward 2 m n k; the gradient of each factor is a matmul of the same size.
constexpr Flops flops(const Matmul& op) {
  return {2 * op.batch * op.m * op.n * op.k};
}

/// Each matrix is read or written once.
constexpr Bytes bytes_moved(const Matmul& op, Dtype dtype) {
  const WideInt elements = op.batch * (op.m * op.k + op.k * op.n + op.m * op.n);
  return {elements * storage_bits(dtype) / 8};
}

/// Matmuls of rows that are distributed over `groups` weight matrices (mixture of experts).  Only
/// the routed rows count: `rows` is their sum.
struct GroupedMatmul {
  WideInt groups = 1;
  WideInt rows = 0;
  WideInt n = 0;
  WideInt k = 0;
};

constexpr Flops flops(const GroupedMatmul& op) {
  return {2 * op.rows * op.n * op.k};
}

/// Rows, results, and the weights of all groups are read or written once.
constexpr Bytes bytes_moved(const GroupedMatmul& op, Dtype dtype) {
  const WideInt elements = op.rows * (op.k + op.n) + op.groups * op.k * op.n;
  return {elements * storage_bits(dtype) / 8};
}

/// (query, key) pairs that attention uses in one sequence.  If there are fewer queries than keys (a
/// cache), the queries are the last positions, except for `causal`, which torch aligns at the
/// first.
struct MaskPairs {
  enum class Shape : std::uint8_t {
    full,                 ///< every pair
    causal,               ///< key <= query, aligned at the first position
    causal_bottom_right,  ///< key <= query, aligned at the last position
    window,               ///< causal, and at most `size` keys back, including the query's own
    chunk,                ///< causal inside chunks of `size`
    prefix,               ///< the first `size` keys for all queries, causal after them
  };
  Shape shape = Shape::causal;
  std::int64_t size = 0;
};

/// Pairs of one sequence of `queries` x `keys`.
WideInt mask_pairs(MaskPairs mask, std::int64_t queries, std::int64_t keys);

/// Pairs of packed documents, which do not attend to each other.
WideInt mask_pairs(MaskPairs mask, std::span<const std::int64_t> lengths);

/// Pairs of a band: query i uses the `width` keys that end at key i + `diagonal`, if they
/// exist.
WideInt band_pairs(std::int64_t queries,
                   std::int64_t keys,
                   std::int64_t diagonal,
                   std::int64_t width);

/// softmax(Q K^T) V, summed over sequences: `pairs` is the number of pairs that the mask keeps.
struct Attention {
  WideInt pairs = 0;
  WideInt heads = 0;     ///< query heads; each query of a group uses its keys
  WideInt kv_heads = 0;  ///< for bytes moved only
  WideInt d_qk = 0;
  WideInt d_v = 0;
  WideInt queries = 0;  ///< tokens, for bytes moved only
  WideInt keys = 0;
};

/// Scores and values: 2 P n d_qk + 2 P n d_v.
constexpr Flops flops(const Attention& op) {
  return {2 * op.pairs * op.heads * (op.d_qk + op.d_v)};
}

/// dV, dP: d_v each; dQ, dK: d_qk each.  Required by the gradient, in any implementation.
constexpr Flops model_backward_flops(const Attention& op) {
  return {4 * op.pairs * op.heads * (op.d_qk + op.d_v)};
}

/// As flash kernels execute it, with recomputed scores (FlashAttention-2, arXiv 2307.08691,
/// section 3.1).
constexpr Flops flash_backward_flops(const Attention& op) {
  return {2 * op.pairs * op.heads * (3 * op.d_qk + 2 * op.d_v)};
}

constexpr Bytes bytes_moved(const Attention& op, Dtype dtype) {
  const WideInt elements =
      op.queries * op.heads * (op.d_qk + op.d_v) + op.keys * op.kv_heads * (op.d_qk + op.d_v);
  return {elements * storage_bits(dtype) / 8};
}

/// A convolution with any number of spatial dimensions.  `positions` is the number of positions of
/// the kernel: output positions, or input positions if transposed.  `weights` is the number of
/// elements of the weight tensor, which has in_channels / groups per output channel, so that groups
/// are included.
struct Convolution {
  WideInt batch = 0;
  WideInt positions = 0;
  WideInt weights = 0;
};

/// Forward; the gradients of input and weight each cost the same.
constexpr Flops flops(const Convolution& op) {
  return {2 * op.batch * op.positions * op.weights};
}

/// Mamba-2's state-space scan, per token: state update (outer product and decay) and readout.
/// Cost per token, 7 d_inner N forward as Megatron-LM counts it (training.py, mamba layer).
struct StateSpaceScan {
  WideInt tokens = 0;
  WideInt inner = 0;  ///< d_inner: heads x head dimension
  WideInt state = 0;  ///< N
};

constexpr Flops flops(const StateSpaceScan& op) {
  return {7 * op.tokens * op.inner * op.state};
}

/// Gated delta rule (gated DeltaNet): per token and head, decay-and-erase, write, and read of a d_k
/// x d_v state: four matmuls of 2 d_k d_v FLOPs forward, as Megatron-LM counts it with d_k = d_v.
struct DeltaRule {
  WideInt tokens = 0;
  WideInt heads = 0;
  WideInt d_k = 0;
  WideInt d_v = 0;
};

constexpr Flops flops(const DeltaRule& op) {
  return {8 * op.tokens * op.heads * op.d_k * op.d_v};
}

}  // namespace flopmeter
