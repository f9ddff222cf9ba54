// SPDX-License-Identifier: Apache-2.0
//
// Mamba-2: layers of nothing but the state-space mixer.
#include "../blocks/decoder.h"
#include "../blocks/recurrent_block.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  const bool bias = config.flag_or({"use_bias"}, false);
  const Mamba2Block mamba{.hidden = config.size_or({"hidden_size"}, 4096),
                          .heads = config.size_or({"num_heads"}, 128),
                          .head_dim = config.size_or({"head_dim"}, 64),
                          .groups = config.size_or({"n_groups"}, 8),
                          .state = config.size_or({"state_size"}, 128),
                          .kernel = config.size_or({"conv_kernel"}, 4),
                          .bias = bias,
                          .out_bias = bias,
                          .conv_bias = config.flag_or({"use_conv_bias"}, true)};
  check_mamba2(config, mamba);
  const std::int64_t layers = config.size_or({"num_hidden_layers"}, 64);
  if (layers > most_layers) config.fail("more than 65536 layers, so no model configuration");
  if (!config.status()) return {};
  const DecoderFrame frame{.prefix = "backbone.",
                           .embed = "embeddings",
                           .final_norm = "norm_f",
                           .hidden = mamba.hidden,
                           .vocab = config.size_or({"vocab_size"}, 32768),
                           .tied = config.flag_or({"tie_word_embeddings"}, false)};
  ModelBuilder builder;
  open_decoder(builder, frame);
  builder.layers("backbone.layers.", layers, [&](LayerBuilder& layer) {
    const Value x = LayerBuilder::input();
    layer.output(layer.sum(x, mamba2_block(layer, norm(layer, x, "norm", mamba.hidden), mamba)));
  });
  close_decoder(builder, frame);
  ModelFacts& facts = builder.model.facts;
  facts.layers = facts.scan_layers = layers;
  facts.hidden = mamba.hidden;
  facts.vocab = frame.vocab;
  facts.tied = frame.tied;
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_mamba2{
    .name = "mamba2",
    .help = "Mamba-2: state-space layers throughout",
    .types = "mamba2 Mamba2ForCausalLM",
    .build = build,
    .random_config = {.recurrent = true, .mixer_only = true},
    // One layer, h = 8, 4 heads of 4, 1 group of state 2, kernel 3, V = 32, s = 4. Parameters:
    // embedding and head 512; in_proj 8*(16 + 20 + 4) = 320; convolution 3*20 + 20; dt, A, D 12;
    // norm 16; out_proj 128; norms 16: 1084. Per token, forward: 2*(448 + 60 + 256) = 1528; scan
    // 7*16*2 = 224. Training: 3*4*1752.
    .example = {
        .config =
            R"({"model_type": "mamba2", "hidden_size": 8, "num_hidden_layers": 1, "num_heads": 4,
                             "head_dim": 4, "n_groups": 1, "state_size": 2, "conv_kernel": 3,
                             "vocab_size": 32})",
        .parameters = 1084,
        .seq_len = 4,
        .training_flops = 21024}};

}  // namespace flopmeter
