// SPDX-License-Identifier: Apache-2.0
//
// C = 6 N D (Kaplan et al. 2020, section 2.1): 2 N forward and 4 N backward for each of D tokens.
// The paper leaves embeddings out of N; what is published as "6N" since counts every parameter, and
// so does this.  Of a mixture of experts, N is what a token passes through.  Frozen parameters
// count like trained ones.
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

extern constinit const Convention convention_kaplan_6n{.name = "kaplan-6n",
                                            .help = "6 N a token: parameters alone, no attention",
                                            .source = "https://arxiv.org/abs/2001.08361",
                                            .count = count,
                                            .needs_operations = false};

}  // namespace flopmeter
