// SPDX-License-Identifier: Apache-2.0
//
// Language model of a multimodal model: LLaMA, Mistral, or Qwen with the names used there and the
// defaults of its configuration class, which published files rely on.  Private to the
// catalog.
#pragma once

#include "moe_block.h"

namespace flopmeter {

/// Defaults of a configuration class, and the layers with a window.
struct TextDefaults {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< 0: the number of heads
  std::int64_t head_dim = 0;  ///< 0: hidden / heads
  bool qk_norm = false;
  bool qkv_bias = false;
  enum class Window : std::uint8_t {
    none,
    all,    ///< every layer, if `sliding_window` is not null
    upper,  ///< layers from `max_window_layers` on, if `use_sliding_window`
  } window = Window::none;
  std::int64_t max_window_layers = 0;
};

/// Defaults for the `model_type` of a text_config; without it, those of `otherwise`.
TextDefaults text_defaults(const Config& text, std::string_view otherwise = "llama");

/// Whether the head is tied, for classes that tie it by default.  Files of transformers 4 without
/// the key leave it to the text model, which does not.
bool is_tied(const Config& config);

/// `tied` comes from the outer configuration.
Decoder read_text_model(const Config& text, const TextDefaults& defaults, bool tied);

/// For Qwen2-VL and Qwen2.5-VL: in `text_config`, or at the top, as in published files.
Decoder read_qwen_text(const Config& config);

/// Embedding, layers, norm, and head, after an existing vision tower.
void add_text_model(ModelBuilder& builder, const Decoder& text);
/// The same with experts; dense if `sparse` is empty.
void add_text_model(ModelBuilder& builder, const SparseDecoder& text);

}  // namespace flopmeter
