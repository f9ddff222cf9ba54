// SPDX-License-Identifier: Apache-2.0
//
// Vision towers of CLIP, SigLIP, and Idefics: images of one size, one row per patch.  Private to
// the catalog.
#pragma once

#include "vision_block.h"

#include <string>

namespace flopmeter {

struct TowerSizes {
  std::int64_t width = 0;
  std::int64_t heads = 0;
  std::int64_t ffn = 0;
  std::int64_t layers = 0;
  std::int64_t patch = 0;  ///< side in pixels
  std::int64_t image = 0;  ///< side in pixels
};

/// For models that split images into tiles.
inline constexpr std::string_view tiles_note =
    "an image that is cut into tiles counts as many: --image-grid-thw 5,1,1 for one of five, its "
    "small copy included";

struct ImageTower {
  std::string prefix = "model.vision_tower.";
  bool clip = false;  ///< class token, and a norm before the layers
  VisionLayer layer;
  std::int64_t layers = 0;
  std::int64_t read = 0;  ///< number of layers up to the output that is read
  std::int64_t patches = 0;
  std::int64_t kernel = 0;  ///< weights per patch kernel
  bool final_norm = false;  ///< the output is read after the last norm
  bool pooled = false;      ///< has SigLIP's pooling head
};

/// Without `vision_config`, the tower has the sizes of `whole`; missing keys in it have the
/// defaults of the tower's class.  All layers are read.
ImageTower read_image_tower(const Config& config, std::string_view type, const TowerSizes& whole);

void add_image_tower(ModelBuilder& builder, const ImageTower& tower);

}  // namespace flopmeter
