// SPDX-License-Identifier: Apache-2.0
//
// Phi 3 and Phi 4: LLaMA with fused query-key-value and fused gate and up projections.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  Decoder decoder = read_decoder(config);
  decoder.attention.names = {.q = "self_attn.qkv_proj", .k = "", .v = "", .o = "self_attn.o_proj"};
  decoder.mlp.gate = "";
  decoder.mlp.up = "mlp.gate_up_proj";
  decoder.window = config.count_or({"sliding_window"}, 0);
  decoder.dropout = config.number_or({"resid_pdrop"}, 0);
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_phi3{
    .name = "phi3",
    .help = "Phi 3, Phi 4: fused projections, grouped keys, gated MLP",
    .types = "phi3 Phi3ForCausalLM",
    .build = build,
    .random_config = {.keys = R"("sliding_window": null)"},
    // One layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 4.
    // Parameters: embedding and head 2*256; qkv_proj 8*(8 + 2*4) = 128; o_proj 64; gate_up_proj
    // 256; down_proj 128; norms 3*8. Per token, forward: 2*(192 + 384 + 256) = 1664; attention: 10
    // pairs x 2 heads x 2*(4+4) = 320. Training: 3*(4*1664 + 320).
    .example = {.config = R"({"model_type": "phi3", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 16,
                             "vocab_size": 32})",
                .parameters = 1112,
                .seq_len = 4,
                .training_flops = 20928}};

}  // namespace flopmeter
