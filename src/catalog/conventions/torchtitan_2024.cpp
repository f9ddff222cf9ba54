// SPDX-License-Identifier: Apache-2.0
//
// torchtitan's first published results (A100, 2024): 6 N + 12 L H Q T per token over all
// parameters.
#include "../src/closed_form.h"

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  const WideInt n = count_parameters(model).active;
  return parameters_and_attention(model, batch, training, n, Policy::Pairs::full);
}

}  // namespace

extern constinit const Convention convention_torchtitan_2024{
    .name = "torchtitan-2024",
    .help = "6 N + 12 L H Q T per token, N all parameters, as in the first torchtitan results",
    .source = "https://github.com/pytorch/torchtitan/pull/280",
    .count = count,
    .example = {.model_flops = 6 * 1112 * 4 + 3 * 512}};

}  // namespace flopmeter
