// SPDX-License-Identifier: Apache-2.0
//
// Vision tower of Qwen3-VL and Qwen3.5: attention within each frame, learned positions, and a
// merger after it.  Private to the catalog.
#pragma once

#include "blocks.h"

namespace flopmeter {

/// `stacked` further mergers read intermediate blocks; the first text layers read one each.  Those
/// beyond `text_layers` are not read.
void add_qwen3_tower(ModelBuilder& builder,
                     const Config& vision,
                     std::int64_t stacked,
                     std::int64_t text_layers);

}  // namespace flopmeter
