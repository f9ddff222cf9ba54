// SPDX-License-Identifier: Apache-2.0
#include "batch_sizes.h"

#include <flopmeter/catalog/cost_model.h>
#include <flopmeter/core/text.h>

#include <algorithm>

namespace flopmeter {
namespace {

/// Gradients of one layer.
struct LayerGrads {
  bool input = false;
  std::vector<Trained> trained;  ///< by node; empty: all
  std::vector<bool> adapted;     ///< by node: has a LoRA adapter

  bool operator==(const LayerGrads&) const = default;
};

/// Computes the cost of layers for one model, batch, training, and policy.
class CostModel {
 public:
  CostModel(const Model& model, const Batch& batch, const Training& training, const Policy& policy)
      : model_(model), sizes_(model, batch), batch_(batch), training_(training), policy_(policy) {
    if (training.trainable.kind == Trainable::Kind::freeze) embedding_ = embedding_name(model);
  }

  Breakdown run() {
    using Mtp = Training::Mtp;
    const bool mtp =
        training_.mtp == Mtp::on || (training_.mtp == Mtp::by_convention && policy_.mtp);
    for (const LayerRun& run : model_.runs) {
      if (!run.mtp || mtp) add_run(run);
    }
    return total_;
  }

 private:
  [[nodiscard]] bool eager() const {
    const bool as_run = policy_.attention_recomputes || policy_.pairs == Policy::Pairs::kernel ||
                        policy_.pairs == Policy::Pairs::op_stream;
    return as_run && training_.attention == AttentionKernel::eager;
  }

  void add_run(const LayerRun& run) {
    const LayerKind& kind = model_.kinds[run.kind];
    bool& stream = run.stream == LayerRun::Stream::vision ? vision_grad_ : text_grad_;
    if (run.joins_vision) stream = stream || vision_grad_;
    const bool before = stream;
    std::optional<LayerGrads> supported;
    bool output = false;
    Breakdown cost;
    for (std::int64_t i = 0; i < run.count; ++i) {
      LayerGrads grads = layer_grads(run, kind, run.first + i, stream);
      if (supported != grads) {
        cost = {};
        output = add_layer(run, kind, grads, cost);
        supported = std::move(grads);
      }
      // If the number does not matter, all further layers equal this one.
      const bool settled = !names_layers(training_.trainable) && output == stream;
      const WideInt times = settled ? run.count - i : 1;
      stream = output;
      accumulate(cost, times);
      if (settled) break;
    }
    if (run.mtp || run.unread) stream = before;  // a side branch: later layers do not read it
  }

  void accumulate(const Breakdown& cost, WideInt times) {
    for (std::size_t c = 0; c < component_count; ++c) {
      total_.parts[c].forward += times * cost.parts[c].forward;
      total_.parts[c].backward += times * cost.parts[c].backward;
      total_.parts[c].recompute += times * cost.parts[c].recompute;
    }
  }

  [[nodiscard]] LayerGrads layer_grads(const LayerRun& run,
                                       const LayerKind& kind,
                                       std::int64_t number,
                                       bool input) const {
    LayerGrads grads{.input = input, .trained = {}, .adapted = {}};
    const Trainable& trainable = training_.trainable;
    if (trainable.kind == Trainable::Kind::all) return grads;
    for (const Node& node : kind.nodes) {
      grads.trained.push_back(trained(trainable, run, node, number, embedding_));
      grads.adapted.push_back(is_adapted(trainable, run, node, number));
    }
    return grads;
  }

  /// Adds the layer's cost and returns whether its output needs a gradient.
  bool add_layer(const LayerRun& run,
                 const LayerKind& kind,
                 const LayerGrads& grads,
                 Breakdown& cost) {
    needs_.assign(kind.values, false);
    needs_[0] = grads.input;
    Breakdown skipped;  // not recomputed
    for (std::size_t n = 0; n < kind.nodes.size(); ++n) {
      const Node& node = kind.nodes[n];
      const Trained own = grads.trained.empty() ? Trained{} : grads.trained[n];
      const bool adapted = !grads.adapted.empty() && grads.adapted[n];
      bool inputs_need = false;
      for (std::uint8_t i = 0; i < node.input_count; ++i)
        inputs_need = inputs_need || needs_[node.inputs[i]];
      const bool weight = own.weight && (node.tied || weight_count(node) > 0);
      const bool bias = own.bias && bias_count(node) > 0;
      needs_[node.output] = inputs_need || adapted || weight || bias;
      if (counts(node.component)) add_node(node, inputs_need, own.weight, adapted, cost, skipped);
    }
    const bool output = needs_[kind.output];
    if (output && !training_.forward_only && !run.unread) recompute(run, cost, skipped);
    if (training_.forward_only || run.unread) {
      for (PartFlops& part : cost.parts) part.backward = {};
    }
    return output;
  }

  [[nodiscard]] bool counts(Component component) const {
    if (component == Component::router) return policy_.router;
    if (component == Component::vision) return policy_.vision;
    return true;
  }

  /// Forward and gradients of one matmul with a weight.
  void weighted(PartFlops& part, Flops forward, bool input_grad, bool weight_grad) const {
    part.forward += forward;
    const int products = policy_.trainable_aware ? (input_grad ? 1 : 0) + (weight_grad ? 1 : 0) : 2;
    part.backward += products * forward;
  }

  void add_node(const Node& node,
                bool input_grad,
                bool trainable,
                bool adapted,
                Breakdown& cost,
                Breakdown& skipped) const {
    PartFlops& part = cost[node.component];
    const bool per_patch = policy_.merger_per_patch && node.rows == Rows::visual;
    const WideInt rows = sizes_.rows(per_patch ? Rows::patches : node.rows);
    switch (node.kind) {
      case Node::Kind::linear: {
        const bool all = node.every_expert_runs && policy_.pairs == Policy::Pairs::op_stream;
        const std::int64_t times = all ? node.experts : node.active;
        const Flops forward =
            flops(GroupedMatmul{.rows = rows * times, .n = node.out, .k = node.in});
        weighted(part, forward, input_grad, trainable);
        if (node.last_saved && !adapted) skipped[node.component].forward += forward;
        if (adapted) add_adapter(node, rows, input_grad, cost, skipped);
        return;
      }
      case Node::Kind::attention:
        return add_attention(node, part);
      case Node::Kind::convolution:
        weighted(part,
                 flops(Convolution{.batch = 1, .positions = rows, .weights = node.in * node.out}),
                 input_grad,
                 trainable);
        return;
      case Node::Kind::scan:
        return unweighted(
            part,
            flops(StateSpaceScan{.tokens = rows, .inner = node.in, .state = node.out}),
            input_grad);
      case Node::Kind::delta:
        return unweighted(
            part,
            flops(DeltaRule{.tokens = rows, .heads = node.in, .d_k = 1, .d_v = node.out}),
            input_grad);
      case Node::Kind::embedding:
        if (policy_.embedding_as_matmul && node.in == model_.facts.vocab)
          weighted(part, flops(Matmul{.m = rows, .n = node.out, .k = node.in}), true, true);
        return;
      case Node::Kind::parameters:
      case Node::Kind::sum:
        return;
    }
  }

  void unweighted(PartFlops& part, Flops forward, bool needs_grad) const {
    part.forward += forward;
    if (needs_grad || !policy_.trainable_aware) part.backward += 2 * forward;
  }

  /// y = W x + B (A x): A maps to `rank`, B back.  Both are trained, so the input of B needs a
  /// gradient.
  void add_adapter(
      const Node& node, WideInt rows, bool input_grad, Breakdown& cost, Breakdown& skipped) const {
    const WideInt rank = training_.trainable.lora_rank;
    PartFlops& part = cost[Component::adapters];
    const Flops up = flops(Matmul{.m = rows, .n = node.out, .k = rank});
    weighted(part, flops(Matmul{.m = rows, .n = rank, .k = node.in}), input_grad, true);
    weighted(part, up, true, true);
    if (node.last_saved) skipped[Component::adapters].forward += up;
  }

  void add_attention(const Node& node, PartFlops& part) const {
    const AttentionSpec& spec = node.attention;
    // Twice the pairs, so that s^2 / 2 is an integer.
    const WideInt twice = sizes_.twice_pairs(spec, batch_, policy_, training_.attention);
    const Flops scores{twice * spec.heads * spec.d_qk};
    const Flops values{twice * spec.heads * (policy_.values_as_keys ? spec.d_qk : spec.d_v)};
    part.forward += scores + values;
    const bool q = needs_[node.inputs[0]];
    const bool k = needs_[node.inputs[1]];
    const bool v = needs_[node.inputs[2]];
    if (policy_.trainable_aware && eager()) {
      const auto one = [](bool needed) { return needed ? 1 : 0; };
      part.backward += (one(q) + one(k)) * scores + (one(q || k) + one(v)) * values;
    } else if (q || k || v || !policy_.trainable_aware) {
      part.backward += 2 * (scores + values);
      if (policy_.attention_recomputes && !eager()) part.backward += scores;
    }
  }

  void recompute(const LayerRun& run, Breakdown& cost, const Breakdown& skipped) const {
    if (training_.recompute == Recompute::selective) {
      PartFlops& core = cost[Component::attention_core];
      core.recompute = core.forward;
    }
    if (training_.recompute != Recompute::full || !run.checkpointed) return;
    for (std::size_t c = 0; c < component_count; ++c) {
      cost.parts[c].recompute = cost.parts[c].forward - skipped.parts[c].forward;
    }
  }

  const Model& model_;
  BatchSizes sizes_;
  const Batch& batch_;
  const Training& training_;
  const Policy& policy_;
  std::string embedding_;  ///< name of the weight of tied heads
  Breakdown total_;
  bool text_grad_ = false;
  bool vision_grad_ = false;
  std::vector<bool> needs_;
};

}  // namespace

PartFlops Breakdown::total() const {
  PartFlops sum;
  for (const PartFlops& part : parts) {
    sum.forward += part.forward;
    sum.backward += part.backward;
    sum.recompute += part.recompute;
  }
  return sum;
}

Breakdown flop_cost(const Model& model,
                    const Batch& batch,
                    const Training& training,
                    const Policy& policy) {
  return CostModel{model, batch, training, policy}.run();
}

}  // namespace flopmeter
