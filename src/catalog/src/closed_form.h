// SPDX-License-Identifier: Apache-2.0
//
// Terms of published closed forms: parameters times tokens, and attention.  They ignore frozen
// parameters: backward is twice forward.  Private to the catalog.
#pragma once

#include <flopmeter/catalog/convention.h>

namespace flopmeter {

/// 2 N per token forward, 4 N backward.
PartFlops parameter_term(WideInt parameters, const Batch& batch, const Training& training);

/// Attention of the text layers, 4 P n d forward (with P = s^2 pairs: 12 L H Q T per token).
PartFlops attention_term(const Model& model,
                         const Batch& batch,
                         const Training& training,
                         Policy::Pairs pairs);

/// 6 N + the attention term.
Counted parameters_and_attention(const Model& model,
                                 const Batch& batch,
                                 const Training& training,
                                 WideInt parameters,
                                 Policy::Pairs pairs);

/// Parameters of position tables.
WideInt position_parameters(const Model& model);

/// Sum of squared sequence lengths.
WideInt squared_lengths(const Batch& batch);

/// A step with `forward` FLOPs, and twice that backward.
PartFlops tripled(Flops forward, const Training& training);

}  // namespace flopmeter
