// SPDX-License-Identifier: Apache-2.0
#include "closed_form.h"

namespace flopmeter {

PartFlops tripled(Flops forward, const Training& training) {
  return {.forward = forward,
          .backward = training.forward_only ? Flops{} : 2 * forward,
          .recompute = {}};
}

PartFlops parameter_term(WideInt parameters, const Batch& batch, const Training& training) {
  return tripled({2 * parameters * batch.tokens()}, training);
}

PartFlops attention_term(const Model& model,
                         const Batch& batch,
                         const Training& training,
                         Policy::Pairs pairs) {
  Policy policy;
  policy.pairs = pairs;
  policy.trainable_aware = false;
  const Training plain{.forward_only = training.forward_only};
  return flop_cost(model, batch, plain, policy)[Component::attention_core];
}

Counted parameters_and_attention(const Model& model,
                                 const Batch& batch,
                                 const Training& training,
                                 WideInt parameters,
                                 Policy::Pairs pairs) {
  Counted counted;
  counted.parts[Component::parameters] = parameter_term(parameters, batch, training);
  counted.parts[Component::attention_core] = attention_term(model, batch, training, pairs);
  return counted;
}

WideInt position_parameters(const Model& model) {
  WideInt positions = 0;
  for (const LayerRun& run : model.runs) {
    for (const Node& node : model.kinds[run.kind].nodes) {
      if (node.kind == Node::Kind::embedding && node.in != model.facts.vocab)
        positions += node.in * node.out * run.count;
    }
  }
  return positions;
}

WideInt squared_lengths(const Batch& batch) {
  WideInt sum = 0;
  for (const SequenceGroup& run : batch.sequences)
    sum += WideInt{run.count} * run.length * run.length;
  return sum;
}

}  // namespace flopmeter
