// SPDX-License-Identifier: Apache-2.0
//
// CostRule a model: its list of operations, a batch, what is trainable, and a policy that says what
// counts.
#pragma once

#include <flopmeter/catalog/model.h>
#include <flopmeter/core/result.h>

#include <array>
#include <string>

namespace flopmeter {

/// How attention is implemented.
enum class AttentionKernel : std::uint8_t {
  fused,  ///< one kernel; its backward computes the scores once more
  eager,  ///< two matmuls over all pairs
};
enum class Recompute : std::uint8_t {
  none,
  selective,  ///< the attention core
  full,  ///< every layer, as torch's checkpoint does: up to the last tensor that backward needs
};

/// Which parameters get gradients.
struct Trainable {
  enum class Kind : std::uint8_t { all, lora, freeze } kind = Kind::all;
  std::string pattern;  ///< freeze: names that are frozen; lora: linears that get adapters
  std::int64_t lora_rank = 0;

  /// "all", "lora:R[:GLOB]" or "freeze:GLOB".
  static Result<Trainable> parse(std::string_view text);
};

/// What a training step does besides what the model is.
struct Training {
  Trainable trainable;
  Recompute recompute = Recompute::none;
  AttentionKernel attention = AttentionKernel::fused;
  bool forward_only = false;
  /// Whether multi-token prediction layers are trained too.
  enum class Mtp : std::uint8_t { by_convention, on, off } mtp = Mtp::by_convention;
};

/// What counts.
struct Policy {
  enum class Pairs : std::uint8_t {
    exact,      ///< what the mask leaves
    half,       ///< s^2 / 2 for causal; windows exact
    full,       ///< s^2 whatever the mask
    kernel,     ///< eager: s^2; fused: what the mask leaves, as flash kernels skip the rest
    op_stream,  ///< as `kernel`, but a fused op that is handed a mask tensor computes s^2
  };
  Pairs pairs = Pairs::exact;
  bool attention_recomputes =
      false;  ///< flash backward at 2.5 x forward, where the kernel is fused
  bool router = true;
  bool vision = true;
  bool mtp = false;                  ///< multi-token prediction counts where the model has it
  bool trainable_aware = true;       ///< false: backward is twice forward whatever is frozen
  bool windows_as_bands = false;     ///< full and half: a window W has s min(s, W) pairs, not s^2
  bool values_as_keys = false;       ///< values are taken to be as wide as keys
  bool embedding_as_matmul = false;  ///< the gather is supported as a product with the table
  bool merger_per_patch = false;     ///< the projector is supported for each patch of the tower
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

/// Pairs that the text layers' attention uses, summed over sequences, for one layer of full causal
/// attention.
WideInt causal_pairs(const Batch& batch);

/// Images with the default grid filled in: a batch of a multimodal model without images is taken to
/// hold one image of 576 visual tokens a sequence.
Batch with_default_images(const Model& model, Batch batch);

/// Visual tokens that the language model sees.
WideInt visual_tokens(const Model& model, const Batch& batch);

/// `trainable` includes adapters.
ParameterCounts count_parameters(const Model& model, const Training& training = {});

}  // namespace flopmeter
