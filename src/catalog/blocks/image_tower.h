// SPDX-License-Identifier: Apache-2.0
//
// CLIP's and SigLIP's towers, and Idefics' copy of the latter: images of one size, each patch a
// row.  Private to the catalog.
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

/// For models that cut images.
inline constexpr std::string_view tiles_note =
    "an image that is cut into tiles counts as many: --image-grid-thw 5,1,1 for one of five, its "
    "small copy included";

struct ImageTower {
  std::string prefix = "model.vision_tower.";
  bool clip = false;  ///< a class token, and a norm before the layers
  VisionLayer layer;
  std::int64_t layers = 0;
  std::int64_t read = 0;  ///< layers below the output that is read
  std::int64_t patches = 0;
  std::int64_t kernel = 0;  ///< weights of a patch's kernel
  bool final_norm = false;  ///< what is read lies behind the last norm
  bool pooled = false;      ///< SigLIP's pooling head is there
};

/// Without any `vision_config` a tower has the sizes of `whole`; keys missing inside one are those
/// of the tower's own class.  All layers are read.
ImageTower read_image_tower(const Config& config, std::string_view type, const TowerSizes& whole);

void add_image_tower(ModelBuilder& builder, const ImageTower& tower);

}  // namespace flopmeter
