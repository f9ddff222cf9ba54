// SPDX-License-Identifier: Apache-2.0
//
// 6 N + 12 L H Q T per token (Chowdhery et al. 2022, appendix B): N parameters, L layers, H heads
// of size Q, T tokens in a sequence; the mask and recomputation do not matter.  N includes the
// embeddings (PaLM ties them to the head, which is a matmul).  If keys and values differ in width,
// 2 Q is their sum.
#include "../src/closed_form.h"

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  const WideInt n = count_parameters(model).active;
  return parameters_and_attention(model, batch, training, n, Policy::Pairs::full);
}

}  // namespace

extern constinit const Convention convention_palm{
    .name = "palm",
    .help = "6 N + 12 L H Q T per token: all parameters, attention over all pairs",
    .source = "https://arxiv.org/abs/2204.02311",
    .count = count,
    .example = {.model_flops = 6 * 1112 * 4 + 3 * 512}};

}  // namespace flopmeter
