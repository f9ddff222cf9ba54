// SPDX-License-Identifier: Apache-2.0
//
// gpt2_estimate_mfu(): 6 N + 6 L C T per token, C channels; N holds norms, biases and positions.
// Its first versions had 12 L C T, as nanoGPT has.  llm.c pads the vocabulary to a multiple of 128:
// give the padded vocab_size to get its N.
#include "../src/closed_form.h"

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  const WideInt n = count_parameters(model).active;
  return parameters_and_attention(model, batch, training, n, Policy::Pairs::half);
}

}  // namespace

extern constinit const Convention convention_llm_c{
    .name = "llm.c",
    .help = "6 N + 6 L C T per token: causal half of the attention",
    .source = "https://github.com/karpathy/llm.c/blob/master/train_gpt2.cu",
    .count = count,
    .example = {.model_flops = 6 * 1112 * 4 + 3 * 256}};

}  // namespace flopmeter
