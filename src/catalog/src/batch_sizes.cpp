// SPDX-License-Identifier: Apache-2.0
#include "batch_sizes.h"

#include <algorithm>

namespace flopmeter {
namespace {

/// Sum of squares of the windows of `window` that `length` is split into; the last may be shorter.
WideInt squared_pieces(WideInt length, WideInt window) {
  const WideInt rest = length % window;
  return length / window * window * window + rest * rest;
}

WideInt twice_text_pairs(const AttentionSpec& spec,
                         std::int64_t length,
                         const Policy& policy,
                         AttentionKernel kernel) {
  using Shape = MaskPairs::Shape;
  const WideInt all = 2 * WideInt{length} * length;
  const bool plain = spec.mask.shape == Shape::causal;
  const bool band = policy.windows_as_bands && spec.mask.shape == Shape::window;
  const WideInt banded = 2 * WideInt{length} * std::min(length, spec.mask.size);
  switch (policy.pairs) {
    case Policy::Pairs::full:
      return band ? banded : all;
    case Policy::Pairs::half:
      if (band) return banded / 2;
      if (plain || (policy.windows_as_causal && spec.mask.shape == Shape::window)) return all / 2;
      break;
    case Policy::Pairs::kernel:
      if (kernel == AttentionKernel::eager) return all;
      break;
    case Policy::Pairs::op_stream: {
      // A window or chunk longer than the sequence is passed as the causal flag.
      const bool local = spec.mask.shape == Shape::window || spec.mask.shape == Shape::chunk;
      const bool flag = plain || (local && length < spec.mask.size);
      if (kernel == AttentionKernel::eager || !flag || spec.mask_tensor) return all;
      break;
    }
    case Policy::Pairs::exact:
      break;
  }
  return 2 * mask_pairs(spec.mask, length, length);
}

}  // namespace

BatchSizes::BatchSizes(const Model& model, const Batch& batch) {
  const VisionPlan& plan = model.vision;
  WideInt patches = 0;
  WideInt tower = 0;
  WideInt visual = 0;
  for (const ImageGrid& image : batch.images) {
    if (plan.kind == VisionPlan::Kind::fixed) {
      // Only t matters: frames of a video, tiles of an image.
      const WideInt images = WideInt{image.count} * image.t;
      const WideInt tokens = WideInt{plan.patches} + plan.class_tokens;
      patches += images * plan.patches;
      tower += images * tokens;
      visual += images * plan.visual_tokens;
      image_pairs_ += images * tokens * tokens;
    } else if (plan.kind == VisionPlan::Kind::grid) {
      // Attention runs within each frame; windows consist of merged patches.
      const WideInt frames = WideInt{image.count} * image.t;
      const WideInt frame = WideInt{image.h} * image.w;
      const WideInt cell = WideInt{plan.merge} * plan.merge;
      patches += frames * frame;
      tower += frames * frame;
      visual += frames * frame / cell;
      frame_pairs_ += frames * frame * frame;
      if (plan.window > 0) {
        const WideInt window = std::max<std::int64_t>(plan.window / plan.merge, 1);
        window_pairs_ += frames * cell * cell * squared_pieces(image.h / plan.merge, window) *
                         squared_pieces(image.w / plan.merge, window);
      }
    }
  }
  packed_pairs_ = patches * patches;
  rows_ = {batch.tokens(), patches, tower, visual, batch.count()};
}

WideInt BatchSizes::twice_pairs(const AttentionSpec& spec,
                                const Batch& batch,
                                const Policy& policy,
                                AttentionKernel kernel) const {
  switch (spec.over) {
    case AttentionSpec::Over::frames:
      return 2 * frame_pairs_;
    case AttentionSpec::Over::windows:
      return 2 * window_pairs_;
    case AttentionSpec::Over::images:
      return 2 * image_pairs_;
    case AttentionSpec::Over::packed: {
      using Pairs = Policy::Pairs;
      const bool plain = policy.pairs == Pairs::kernel && kernel == AttentionKernel::eager;
      return 2 * (policy.pairs == Pairs::op_stream || plain ? packed_pairs_ : frame_pairs_);
    }
    case AttentionSpec::Over::text:
      break;
  }
  WideInt twice = 0;
  for (const SequenceGroup& run : batch.sequences) {
    twice += run.count * twice_text_pairs(spec, run.length, policy, kernel);
  }
  return twice;
}

WideInt causal_pairs(const Batch& batch) {
  WideInt pairs = 0;
  for (const SequenceGroup& run : batch.sequences) {
    pairs += run.count * mask_pairs({.shape = MaskPairs::Shape::causal}, run.length, run.length);
  }
  return pairs;
}

Batch with_default_images(const Model& model, Batch batch) {
  constexpr std::int64_t default_side = 24;  // 24 x 24 = 576 visual tokens
  if (model.vision.kind == VisionPlan::Kind::none || !batch.images.empty()) return batch;
  const std::int64_t side = default_side * model.vision.merge;
  batch.images.push_back(
      {.t = 1, .h = side, .w = side, .count = static_cast<std::int64_t>(batch.count())});
  return batch;
}

WideInt visual_tokens(const Model& model, const Batch& batch) {
  return BatchSizes{model, batch}.rows(Rows::visual);
}

}  // namespace flopmeter
