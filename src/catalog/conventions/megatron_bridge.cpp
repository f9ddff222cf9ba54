// SPDX-License-Identifier: Apache-2.0
//
// Megatron-Bridge's num_floating_point_operations() for text, since 26.06: as Megatron-LM's, but a
// window counts the pairs that it keeps.
#include "../src/megatron_form.h"

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  return megatron_form(model, batch, training, MegatronWindows::exact);
}

}  // namespace

extern constinit const Convention convention_megatron_bridge{
    .name = "megatron-bridge",
    .help = "as megatron, but layers with a sliding window count the pairs that it keeps",
    .source =
        "https://github.com/NVIDIA-NeMo/Megatron-Bridge/blob/main/src/megatron/bridge/"
        "training/utils/flop_utils.py",
    .count = count,
    .example = {.model_flops = 6 * 832 * 4 + 3 * 256}};

}  // namespace flopmeter
