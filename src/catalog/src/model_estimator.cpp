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

/// FLOPs of the parts to which a recipe applies.
std::uint64_t in_narrow_dtype(const Breakdown& parts, bool with_recompute) {
  WideInt flops = 0;
  for (std::size_t i = 0; i < component_count; ++i) {
    if (stays_wide(static_cast<Component>(i))) continue;
    const PartFlops& part = parts.parts[i];
    flops += (part.forward + part.backward).value;
    if (with_recompute) flops += part.recompute.value;
  }
  return static_cast<std::uint64_t>(flops);
}

/// The model without the layers that stay in bf16.
Model without_wide_layers(Model model) {
  if (model.facts.wide_first == 0 && model.facts.wide_last == 0) return model;
  const std::int64_t from = model.facts.wide_first;
  const std::int64_t to = std::max(from, model.facts.layers - model.facts.wide_last);
  for (LayerRun& run : model.runs) {
    if (!run.numbered || run.mtp || run.stream != LayerRun::Stream::text) continue;
    const std::int64_t end = std::min(run.first + run.count, to);
    run.first = std::max(run.first, from);
    run.count = std::max<std::int64_t>(0, end - run.first);
  }
  return model;
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
    narrow_ = without_wide_layers(model_);
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
    if (dtype_ == Dtype::fp8 || dtype_ == Dtype::fp4) split(flops, batch, request);
    flops.recompute = static_cast<std::uint64_t>((*hardware).recompute.value);
    const PartFlops& head = (*hardware).parts.parts[static_cast<std::size_t>(Component::lm_head)];
    flops.lm_head = static_cast<std::uint64_t>((head.forward + head.backward).value);
    if (!batch.images.empty())
      flops.visual_tokens = static_cast<std::int64_t>((*model).visual_tokens);
    request.convention = "executed";
    const auto executed = flopmeter::estimate(masked_, request);
    if (executed) flops.executed = static_cast<std::uint64_t>((*executed).hardware_flops.value);
    return flops;
  }

 private:
  /// Moves what a recipe leaves in bf16 there; `padded` has the batch that runs.
  void split(FlopEstimate& flops, const Batch& batch, const EstimateRequest& padded) const {
    EstimateRequest real = padded;
    real.batch = batch;
    const auto model = flopmeter::estimate(narrow_, real);
    const auto hardware = flopmeter::estimate(narrow_, padded);
    if (!model || !hardware) return;
    const auto move = [&](auto& by_dtype, std::uint64_t narrow) {
      std::uint64_t& all = by_dtype[static_cast<std::size_t>(dtype_)];
      narrow = std::min(narrow, all);
      by_dtype[static_cast<std::size_t>(Dtype::bf16)] = all - narrow;
      all = narrow;
    };
    move(flops.model, in_narrow_dtype((*model).parts, false));
    // The rest includes what fused attention recomputes.
    move(flops.hardware, in_narrow_dtype((*hardware).parts, true));
  }

  Model model_;
  Model narrow_;  ///< the layers to which a recipe for 8 or 4 bits applies
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
