// SPDX-License-Identifier: Apache-2.0
//
// Where Megatron's formula differs from the operations of the model:
//  - A Mamba layer is twice as wide as the model, independent of its heads, and has no convolution.
//  - A delta rule has d_v x d_v states.
//  - The norms of latent attention and of prediction layers count like weights.
//  - In a hybrid, prediction layers have neither these norms nor their input projection, and
//    attention has no output gate.
#include "megatron_form.h"

#include <algorithm>
#include <array>

namespace flopmeter {
namespace {

using Kind = Node::Kind;

/// Whether a scan reads the convolution `node`.
bool feeds_scan(const Node& node, const LayerKind& kind) {
  const Node* const end = kind.nodes.data() + kind.nodes.size();
  const Node* const reader = std::find_if(&node, end, [](const Node& next) {
    return next.kind == Kind::scan || next.kind == Kind::delta;
  });
  return reader != end && reader->kind == Kind::scan;
}

/// A norm's weights if Megatron counts them.
WideInt counted_norm(const Node& node, bool hybrid) {
  static constexpr std::array<std::string_view, 5> names = {
      "self_attn.q_a_layernorm", "self_attn.kv_a_layernorm", "enorm", "hnorm", "shared_head.norm"};
  return !hybrid && std::find(names.begin(), names.end(), node.name) != names.end() ? 2 * node.in
                                                                                    : 0;
}

/// Width of the output gate, which is part of the query projection.
WideInt gate_width(const LayerKind& kind) {
  WideInt projected = 0;
  WideInt needed = 0;
  for (const Node& node : kind.nodes) {
    if (node.kind == Kind::linear && node.name == "self_attention.linear_qkv") projected = node.out;
    if (node.kind == Kind::attention)
      needed = WideInt{node.attention.heads + 2 * node.attention.kv_heads} * node.attention.d_qk;
  }
  return projected > needed ? projected - needed : 0;
}

/// FLOPs per token of the forward pass that Megatron's formula has in addition to `node`'s.
WideInt difference(const Node& node, const LayerKind& kind, const ModelFacts& facts) {
  switch (node.kind) {
    case Kind::scan: {
      const WideInt extra = 2 * WideInt{facts.hidden} - node.in;
      return extra * (6 * WideInt{facts.hidden} + 7 * node.out);
    }
    case Kind::convolution:
      return feeds_scan(node, kind) ? -2 * node.in * node.out : 0;
    case Kind::delta: {
      const WideInt heads = node.attention.heads;
      return 8 * node.out * (heads * node.out - node.in);
    }
    case Kind::parameters:
      return counted_norm(node, facts.hybrid);
    case Kind::linear:
      if (facts.hybrid && node.name == "eh_proj") return -2 * node.in * node.out;
      if (facts.hybrid && node.name == "self_attention.linear_qkv")
        return -2 * node.in * gate_width(kind);
      return 0;
    default:
      return 0;
  }
}

}  // namespace

Counted megatron_form(const Model& model,
                      const Batch& batch,
                      const Training& training,
                      MegatronWindows windows) {
  Policy policy;
  policy.pairs = Policy::Pairs::half;
  policy.windows_as_causal = windows == MegatronWindows::ignored;
  policy.router = false;
  policy.vision = false;
  policy.mtp = true;
  policy.trainable_aware = false;
  Counted counted{.parts = flop_cost(model, batch, training, policy), .hardware = {}};
  for (const LayerRun& run : model.runs) {
    if (run.mtp && training.mtp == Training::Mtp::off) continue;
    const LayerKind& kind = model.kinds[run.kind];
    for (const Node& node : kind.nodes) {
      const Flops forward{batch.tokens() * run.count * difference(node, kind, model.facts)};
      const bool is_norm = node.component == Component::norm;
      PartFlops& part = counted.parts[is_norm ? Component::attention_projections : node.component];
      part.forward += forward;
      if (!training.forward_only) part.backward += 2 * forward;
    }
  }
  return counted;
}

}  // namespace flopmeter
