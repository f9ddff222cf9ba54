// SPDX-License-Identifier: Apache-2.0
//
// estimate_mfu(): 6 N + 12 L H Q T per token, where N = get_num_params() excludes the position
// table.
#include "../src/closed_form.h"

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  const WideInt n = count_parameters(model).active - position_parameters(model);
  return parameters_and_attention(model, batch, training, n, Policy::Pairs::full);
}

}  // namespace

extern constinit const Convention convention_nanogpt{
    .name = "nanogpt",
    .help = "6 N + 12 L H Q T per token, N without position embeddings",
    .source = "https://github.com/karpathy/nanoGPT/blob/master/model.py",
    .count = count,
    .example = {.model_flops = 6 * 1112 * 4 + 3 * 512}};

}  // namespace flopmeter
