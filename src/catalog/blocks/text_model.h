// SPDX-License-Identifier: Apache-2.0
//
// The language model inside a multimodal one: LLaMA, Mistral or Qwen under the names it has there,
// with the defaults of its configuration class, which published files rely on.  Private to the
// catalog.
#pragma once

#include "moe_block.h"

namespace flopmeter {

/// What a configuration class takes for a key that is left out, and which layers have a window.
struct TextDefaults {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< 0: as many as heads
  std::int64_t head_dim = 0;  ///< 0: hidden / heads
  bool qk_norm = false;
  bool qkv_bias = false;
  enum class Window : std::uint8_t {
    none,
    all,    ///< every layer, where `sliding_window` is not null
    upper,  ///< layers from `max_window_layers` on, where `use_sliding_window`
  } window = Window::none;
  std::int64_t max_window_layers = 0;
};

/// The defaults for a text_config's `model_type`; those of `otherwise` where it says none.
TextDefaults text_defaults(const Config& text, std::string_view otherwise = "llama");

/// `tied` is what the outer configuration says.
Decoder read_text_model(const Config& text, const TextDefaults& defaults, bool tied);

/// Of Qwen2-VL and Qwen2.5-VL: in `text_config`, or beside the other keys as published files have
/// it.
Decoder read_qwen_text(const Config& config);

/// Embedding, layers, norm and head, behind the vision tower that is already there.
void add_text_model(ModelBuilder& builder, const Decoder& text);
/// The same with experts; dense where `sparse` is empty.
void add_text_model(ModelBuilder& builder, const SparseDecoder& text);

}  // namespace flopmeter
