// SPDX-License-Identifier: Apache-2.0
//
// Parameters x tokens x 2.5 forward: two for the product, a quarter more for attention and the
// vision tower.  N is every parameter there is, experts included.
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
    .help = "2.5 N a token forward, twice that backward: a rough figure for any multimodal model",
    .source = "docs/conventions.md",
    .count = count,
    .needs_operations = false};

}  // namespace flopmeter
