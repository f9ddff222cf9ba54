// SPDX-License-Identifier: Apache-2.0
//
// 6 (N - N_embedding) + 6 L H (d_qk + d_v) T per token; a tied embedding stays in N, because it is
// the head.  Masks and windows do not matter, frozen parameters count like trained ones.  In its
// first results, N is all parameters: torchtitan-2024.
#include "../src/closed_form.h"

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  const ParameterCounts counts = count_parameters(model);
  const WideInt n = counts.active - (model.facts.tied ? 0 : counts.embedding);
  return parameters_and_attention(model, batch, training, n, Policy::Pairs::full);
}

}  // namespace

extern constinit const Convention convention_torchtitan{
    .name = "torchtitan",
    .help = "6 N + 12 L H Q T per token, N without an untied input embedding",
    .source = "https://github.com/pytorch/torchtitan/blob/main/torchtitan/models/utils.py",
    .count = count,
    .example = {.model_flops = 6 * (1112 - 256) * 4 + 3 * 512}};

}  // namespace flopmeter
