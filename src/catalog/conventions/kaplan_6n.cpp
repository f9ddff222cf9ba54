// SPDX-License-Identifier: Apache-2.0
//
// C = 6 N D (Kaplan et al. 2020, section 2.1): 2 N forward and 4 N backward for each of D tokens.
// The paper excludes embeddings from N; later publications of "6N" count every parameter, as does
// this.  For a mixture of experts, N is the active parameters.  Frozen parameters count like
// trained ones.
#include "../src/closed_form.h"

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  Counted counted;
  counted.parts[Component::parameters] =
      parameter_term(count_parameters(model).active, batch, training);
  return counted;
}

}  // namespace

extern constinit const Convention convention_kaplan_6n{
    .name = "kaplan-6n",
    .help = "6 N per token: parameters only, no attention",
    .source = "https://arxiv.org/abs/2001.08361",
    .count = count,
    .needs_operations = false,
    .example = {.model_flops = 6 * 1112 * 4, .bare_flops = 10 * 1'000'000 * 6}};

}  // namespace flopmeter
