// SPDX-License-Identifier: Apache-2.0
//
// SmolLM3: LLaMA with rotary positions in three of four layers; if windows are used, the layers
// without positions have them.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

/// `no_rope_layers` has 1 for a layer with rotary positions.
std::vector<int> default_windows(const Config& config, std::int64_t layers) {
  std::vector<int> windowed;
  const auto rotary = config.counts({"no_rope_layers"});
  const std::int64_t every = config.size_or({"no_rope_layer_interval"}, 4);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const auto i = static_cast<std::size_t>(layer);
    const bool has_rotary = i < rotary.size() ? rotary[i] != 0 : (layer + 1) % every != 0;
    windowed.push_back(has_rotary ? 0 : 1);
  }
  return windowed;
}

bool never(std::int64_t /*layer*/, std::int64_t /*unused*/) {
  return false;
}

Model build(const Config& config) {
  Decoder decoder = read_decoder(config, {.kv_heads = 4, .tied = true});
  const bool bias = config.flag_or({"attention_bias"}, false);
  decoder.attention.qkv_bias = decoder.attention.out_bias = bias;
  decoder.mlp.bias = config.flag_or({"mlp_bias"}, false);
  if (!check_sizes(config, decoder)) return {};
  decoder.window = config.count_or({"sliding_window"}, 0);
  const bool by_default =
      !config.has("layer_types") && config.flag_or({"use_sliding_window"}, false);
  decoder.windowed = by_default ? default_windows(config, decoder.layers)
                                : read_windowed(config, decoder.layers, never, 0);
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_smollm3{
    .name = "smollm3",
    .help = "SmolLM3: LLaMA without rotary positions in every fourth layer",
    .types = "smollm3 SmolLM3ForCausalLM",
    .build = build,
    // One layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 4. Parameters: embedding, tied to
    // the head, 256; q, o 64 each; k, v 32 each; MLP 3*128; norms 3*8. Per token, forward: 2*(192 +
    // 384 + 256) = 1664; attention: 10 pairs x 2 heads x 2*(4+4) = 320. Training: 3*(4*1664 + 320).
    .example = {.config = R"({"model_type": "smollm3", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "vocab_size": 32})",
                .parameters = 856,
                .seq_len = 4,
                .training_flops = 20928}};

}  // namespace flopmeter
