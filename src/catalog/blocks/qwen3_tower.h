// SPDX-License-Identifier: Apache-2.0
//
// The vision tower of Qwen3-VL and Qwen3.5: attention inside each frame, learned positions, a
// merger behind it.  Private to the catalog.
#pragma once

#include "blocks.h"

namespace flopmeter {

/// `stacked` further mergers read blocks on the way; the text's first layers take one each, and
/// nothing reads those beyond its `text_layers`.
void add_qwen3_tower(ModelBuilder& builder,
                     const Config& vision,
                     std::int64_t stacked,
                     std::int64_t text_layers);

}  // namespace flopmeter
