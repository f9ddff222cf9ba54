// SPDX-License-Identifier: Apache-2.0
//
// Parameters x tokens x 2.5 forward: two for the matmul, a quarter more for attention and the
// vision tower.  N is all parameters, including experts.
#include "../src/closed_form.h"

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  Counted counted;
  counted.parts[Component::parameters] =
      tripled({5 * count_parameters(model).total * batch.tokens() / 2}, training);
  return counted;
}

}  // namespace

extern constinit const Convention convention_params_2_5{
    .name = "params-2.5",
    .help = "2.5 N per token forward, twice that backward: rough estimate for any multimodal model",
    .source = "docs/concepts/conventions.md",
    .count = count,
    .needs_operations = false,
    .example = {.model_flops = 1112 * 4 * 15 / 2, .bare_flops = 10 * 1'000'000 * 15 / 2}};

}  // namespace flopmeter
