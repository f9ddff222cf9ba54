// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/catalog/estimate.h>
#include <flopmeter/catalog/model_estimator.h>

#include <algorithm>
#include <utility>

namespace flopmeter {
namespace {

/// Recipes for 8 and 4 bits apply to the weights of the layers; attention, the router, and the LM
/// head stay in bf16 (TransformerEngine, torchao).  Parts that mix both count as the recipe's.
bool stays_wide(Component component) {
  return component == Component::attention_core || component == Component::linear_attention ||
         component == Component::router || component == Component::lm_head;
}

std::uint64_t in_wide_dtype(const Breakdown& parts) {
  WideInt flops = 0;
  for (std::size_t i = 0; i < component_count; ++i) {
    const PartFlops& part = parts.parts[i];
    if (stays_wide(static_cast<Component>(i))) flops += (part.forward + part.backward).value;
  }
  return static_cast<std::uint64_t>(flops);
}

std::uint64_t in_narrow_dtype(const Breakdown& parts) {
  WideInt flops = 0;
  for (std::size_t i = 0; i < component_count; ++i) {
    const PartFlops& part = parts.parts[i];
    if (!stays_wide(static_cast<Component>(i)))
      flops += (part.forward + part.backward + part.recompute).value;
  }
  return static_cast<std::uint64_t>(flops);
}

class ModelEstimator final : public FlopEstimator {
 public:
  ModelEstimator(Model model, Training training, const Convention& convention, Dtype dtype)
      : model_(std::move(model)),
        training_(std::move(training)),
        convention_(convention),
        dtype_(dtype) {
    masked_ = model_;
    for (LayerKind& kind : masked_.kinds) {
      for (Node& node : kind.nodes) node.attention.mask_tensor = true;
    }
  }

  [[nodiscard]] std::string_view convention() const override { return convention_.name; }

  [[nodiscard]] std::optional<FlopEstimate> estimate(const Batch& batch) const override {
    Batch padded = batch;
    if (batch.padded_length > 0) {
      for (SequenceGroup& group : padded.sequences) group.length = batch.padded_length;
    }
    EstimateRequest request{.batch = batch,
                            .training = training_,
                            .convention = std::string{convention_.name},
                            .dtype = dtype_};
    const auto model = flopmeter::estimate(model_, request);
    request.batch = padded;
    const auto hardware = flopmeter::estimate(model_, request);
    if (!model || !hardware) return std::nullopt;
    FlopEstimate flops;
    const auto type = static_cast<std::size_t>(dtype_);
    flops.model[type] = static_cast<std::uint64_t>((*model).model_flops.value);
    flops.hardware[type] = static_cast<std::uint64_t>((*hardware).hardware_flops.value);
    if (dtype_ == Dtype::fp8 || dtype_ == Dtype::fp4) {
      const auto wide = static_cast<std::size_t>(Dtype::bf16);
      flops.model[wide] = in_wide_dtype((*model).parts);
      flops.model[type] -= flops.model[wide];
      // The rest includes what fused attention recomputes.
      const std::uint64_t narrow =
          std::min(in_narrow_dtype((*hardware).parts), flops.hardware[type]);
      flops.hardware[wide] = flops.hardware[type] - narrow;
      flops.hardware[type] = narrow;
    }
    flops.recompute = static_cast<std::uint64_t>((*hardware).recompute.value);
    if (!batch.images.empty())
      flops.visual_tokens = static_cast<std::int64_t>((*model).visual_tokens);
    request.convention = "executed";
    const auto executed = flopmeter::estimate(masked_, request);
    if (executed) flops.executed = static_cast<std::uint64_t>((*executed).hardware_flops.value);
    return flops;
  }

 private:
  Model model_;
  Model masked_;  ///< as implementations run it that do not use the mask: over all pairs
  Training training_;
  const Convention& convention_;
  Dtype dtype_;
};

}  // namespace

Result<std::unique_ptr<FlopEstimator>> make_estimator(Model model,
                                                      Training training,
                                                      const std::string& convention,
                                                      Dtype dtype) {
  const auto known = convention_called(convention);
  if (!known) return known.error();
  return std::unique_ptr<FlopEstimator>{
      std::make_unique<ModelEstimator>(std::move(model), std::move(training), **known, dtype)};
}

}  // namespace flopmeter
