// SPDX-License-Identifier: Apache-2.0
//
// FLOP cost of a model: from its list of operations, a batch, the trainable parameters, and a
// policy of what counts.
#pragma once

#include <flopmeter/catalog/model.h>
#include <flopmeter/core/result.h>

#include <array>
#include <string>

namespace flopmeter {

/// How attention is implemented.
enum class AttentionKernel : std::uint8_t {
  fused,  ///< one kernel; its backward recomputes the scores
  eager,  ///< two matmuls over all pairs
};
enum class Recompute : std::uint8_t {
  none,
  selective,  ///< the attention core
  full,       ///< every layer, as torch's checkpoint: up to the last tensor that backward needs
};

/// Which parameters get gradients.
struct Trainable {
  enum class Kind : std::uint8_t { all, lora, freeze } kind = Kind::all;
  std::string pattern;  ///< freeze: frozen names; lora: linears with adapters
  std::int64_t lora_rank = 0;

  /// Reads "all", "lora:R[:GLOB]", or "freeze:GLOB".
  static Result<Trainable> parse(std::string_view text);
};

/// Training options that change the FLOPs of a step.
struct Training {
  Trainable trainable;
  Recompute recompute = Recompute::none;
  AttentionKernel attention = AttentionKernel::fused;
  bool forward_only = false;
  /// Multi-token prediction layers.
  enum class Mtp : std::uint8_t { by_convention, on, off } mtp = Mtp::by_convention;
};

/// Rules of what counts as FLOPs.
struct Policy {
  enum class Pairs : std::uint8_t {
    exact,      ///< pairs that the mask keeps
    half,       ///< s^2 / 2 for causal; windows exact
    full,       ///< s^2 for every mask
    kernel,     ///< eager: s^2; fused: pairs that the mask keeps, as flash kernels skip the rest
    op_stream,  ///< as `kernel`, but s^2 for a fused operator with a mask tensor
  };
  Pairs pairs = Pairs::exact;
  bool attention_recomputes = false;  ///< backward of fused attention is 2.5 x forward
  bool router = true;
  bool vision = true;
  bool mtp = false;             ///< multi-token prediction counts, if the model has it
  bool trainable_aware = true;  ///< false: backward is twice forward, even if parameters are frozen
  bool windows_as_bands = false;     ///< full and half: a window W has s min(s, W) pairs, not s^2
  bool windows_as_causal = false;    ///< half: a window has as many pairs as full attention
  bool values_as_keys = false;       ///< values are assumed as wide as keys
  bool embedding_as_matmul = false;  ///< the gather counts as a matmul with the table
  bool merger_per_patch = false;     ///< the projector counts for each patch of the tower
};

struct PartFlops {
  Flops forward;
  Flops backward;
  Flops recompute;
};

/// FLOPs of one step by component.
struct Breakdown {
  std::array<PartFlops, component_count> parts{};

  PartFlops& operator[](Component component) { return parts[static_cast<std::size_t>(component)]; }
  const PartFlops& operator[](Component component) const {
    return parts[static_cast<std::size_t>(component)];
  }
  [[nodiscard]] PartFlops total() const;
};

Breakdown flop_cost(const Model& model,
                    const Batch& batch,
                    const Training& training,
                    const Policy& policy);

/// Pairs of one text layer with full causal attention, summed over the sequences.
WideInt causal_pairs(const Batch& batch);

/// The batch with default images: if a multimodal model has none, one image of 576 visual tokens
/// per sequence is assumed.
Batch with_default_images(const Model& model, Batch batch);

/// Visual tokens that the language model sees.
WideInt visual_tokens(const Model& model, const Batch& batch);

/// `trainable` includes adapters.
ParameterCounts count_parameters(const Model& model, const Training& training = {});

}  // namespace flopmeter
