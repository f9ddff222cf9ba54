// SPDX-License-Identifier: Apache-2.0
//
// LLaMA 1 to 3 and its derivatives: RMS norm, rotary positions, grouped keys, gated MLP.  The
// multipliers of Granite and MiniCPM scale values and cost nothing; Arcee's MLP has no gate.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  const bool minicpm = is_type(config, "minicpm", "MiniCPMForCausalLM");
  const bool helium = is_type(config, "helium", "HeliumForCausalLM");
  Decoder decoder = read_decoder(config, {.head_dim = helium ? 128 : 0, .tied = minicpm});
  const bool bias = config.flag_or({"attention_bias"}, false);
  decoder.attention.qkv_bias = decoder.attention.out_bias = bias;
  if (helium) decoder.attention.out_bias = false;
  decoder.mlp.gated = !is_type(config, "arcee", "ArceeForCausalLM");
  decoder.mlp.bias = config.flag_or({"mlp_bias"}, false);
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_llama{
    .name = "llama",
    .help =
        "LLaMA 1-3, Yi, Granite, MiniCPM, XVERSE, Arcee, Helium: RMS norm, rotary positions, "
        "grouped "
        "keys, gated MLP",
    .types =
        "llama LlamaForCausalLM Yi YiForCausalLM granite GraniteForCausalLM minicpm "
        "MiniCPMForCausalLM xverse XverseForCausalLM arcee ArceeForCausalLM helium "
        "HeliumForCausalLM",
    .build = build,
    // One layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 4.
    // Parameters: embedding and head 2*256; q, o 64 each; k, v 32 each; MLP 3*128; norms 3*8.
    // Per token, forward: 2*(192 + 384 + 256) = 1664; attention: 4*5/2 = 10 pairs x 2 heads x
    // 2*(4+4) = 320. Training: 3*(4*1664 + 320).
    .example = {.config = R"({"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 16,
                             "vocab_size": 32})",
                .parameters = 1112,
                .seq_len = 4,
                .training_flops = 20928}};

}  // namespace flopmeter
