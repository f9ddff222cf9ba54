// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/catalog/model.h>

#include <algorithm>
#include <array>

namespace flopmeter {

std::string_view to_string(Component component) {
  constexpr auto names = std::to_array<std::string_view>({"attention_projections",
                                                          "attention_core",
                                                          "linear_attention",
                                                          "mlp",
                                                          "router",
                                                          "lm_head",
                                                          "vision",
                                                          "mtp",
                                                          "adapters",
                                                          "embedding_projections",
                                                          "embedding",
                                                          "norm",
                                                          "parameters"});
  return names[static_cast<std::size_t>(component)];
}

Value LayerBuilder::add(Node node, std::initializer_list<Value> inputs) {
  for (const Value value : inputs) node.inputs[node.input_count++] = value.id;
  node.output = kind_.values++;
  kind_.nodes.push_back(node);
  return {node.output};
}

Value LayerBuilder::linear(Value x, const Linear& spec) {
  return add({.kind = Node::Kind::linear,
              .component = spec.component,
              .rows = spec.rows,
              .bias = spec.bias,
              .tied = spec.tied,
              .name = spec.name,
              .in = spec.in,
              .out = spec.out,
              .experts = spec.experts,
              .active = spec.active,
              .every_expert_runs = spec.every_expert_runs},
             {x});
}

Value LayerBuilder::attention(Value q, Value k, Value v, const AttentionSpec& spec) {
  return add({.kind = Node::Kind::attention, .component = spec.component, .attention = spec},
             {q, k, v});
}

Value LayerBuilder::parameters(
    Value x, std::string_view name, WideInt number, bool bias, Component component) {
  return add({.kind = Node::Kind::parameters,
              .component = component,
              .bias = bias,
              .name = name,
              .in = number},
             {x});
}

Value LayerBuilder::embedding(std::string_view name, std::int64_t rows, std::int64_t width) {
  return add({.kind = Node::Kind::embedding,
              .component = Component::embedding,
              .name = name,
              .in = rows,
              .out = width},
             {});
}

Value LayerBuilder::convolution(Value x,
                                std::string_view name,
                                WideInt weights,
                                std::int64_t out,
                                bool bias,
                                Rows rows,
                                Component component) {
  return add({.kind = Node::Kind::convolution,
              .component = component,
              .rows = rows,
              .bias = bias,
              .name = name,
              .in = weights,
              .out = out},
             {x});
}

Value LayerBuilder::scan(Value x, std::string_view name, std::int64_t inner, std::int64_t state) {
  return add({.kind = Node::Kind::scan,
              .component = Component::linear_attention,
              .name = name,
              .in = inner,
              .out = state},
             {x});
}

Value LayerBuilder::delta_rule(
    Value x, std::string_view name, std::int64_t heads, std::int64_t d_k, std::int64_t d_v) {
  return add({.kind = Node::Kind::delta,
              .component = Component::linear_attention,
              .name = name,
              .in = WideInt{heads} * d_k,
              .out = d_v,
              .attention = {.heads = heads}},
             {x});
}

Value LayerBuilder::sum(Value a, Value b) {
  return add({.kind = Node::Kind::sum}, {a, b});
}

Value LayerBuilder::product(Value a, Value b) {
  return add({.kind = Node::Kind::sum, .keeps = true}, {a, b});
}

void LayerBuilder::output(Value x) {
  kind_.output = x.id;
  // A checkpointed layer is recomputed up to the last tensor that backward needs.  A final linear
  // saves its input before it runs, and the residual addition after it saves nothing.
  const auto last = std::find_if(kind_.nodes.rbegin(), kind_.nodes.rend(), [](const Node& node) {
    return node.kind != Node::Kind::sum || node.keeps;
  });
  if (last != kind_.nodes.rend() && last->kind == Node::Kind::linear) last->last_saved = true;
}

LayerRun& ModelBuilder::once(std::string_view prefix, const Describe& describe, Stream stream) {
  LayerKind& kind = model.kinds.emplace_back();
  LayerBuilder builder{kind};
  describe(builder);
  return model.runs.emplace_back(
      LayerRun{.stream = stream,
               .kind = static_cast<std::uint16_t>(model.kinds.size() - 1),
               .prefix = std::string{prefix}});
}

void ModelBuilder::layers(std::string_view prefix,
                          std::int64_t count,
                          const Describe& describe,
                          Stream stream) {
  LayerRun& run = once(prefix, describe, stream);
  run.numbered = true;
  run.count = count;
  run.checkpointed = true;
}

void ModelBuilder::layers(std::string_view prefix,
                          std::span<const int> kinds,
                          const DescribeKind& describe,
                          Stream stream,
                          std::int64_t first) {
  std::vector<std::pair<int, std::uint16_t>> described;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    auto known = std::find_if(described.begin(), described.end(), [&](const auto& entry) {
      return entry.first == kinds[i];
    });
    if (known == described.end()) {
      LayerBuilder builder{model.kinds.emplace_back()};
      describe(builder, kinds[i]);
      const auto kind = static_cast<std::uint16_t>(model.kinds.size() - 1);
      known = described.insert(described.end(), {kinds[i], kind});
    }
    const std::uint16_t kind = known->second;
    LayerRun* last = model.runs.empty() || i == 0 ? nullptr : &model.runs.back();
    if (last != nullptr && last->kind == kind) {
      ++last->count;
      continue;
    }
    model.runs.push_back({.stream = stream,
                          .kind = kind,
                          .prefix = std::string{prefix},
                          .numbered = true,
                          .first = first + static_cast<std::int64_t>(i),
                          .count = 1,
                          .checkpointed = true});
  }
}

}  // namespace flopmeter
