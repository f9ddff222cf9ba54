// SPDX-License-Identifier: Apache-2.0
#include "batch_sizes.h"

#include <flopmeter/catalog/cost_model.h>
#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

std::string full_name(const LayerRun& run, const Node& node, std::int64_t number) {
  std::string name = run.prefix;
  if (run.numbered) name.append(std::to_string(number)).push_back('.');
  return name.append(node.name);
}

/// Whether one of the patterns, which commas separate, matches.
bool matches_any(std::string_view patterns, std::string_view name) {
  while (true) {
    const std::size_t comma = patterns.find(',');
    if (glob_match(patterns.substr(0, comma), name)) return true;
    if (comma == std::string_view::npos) return false;
    patterns.remove_prefix(comma + 1);
  }
}

}  // namespace

std::string embedding_name(const Model& model) {
  for (const LayerRun& run : model.runs) {
    for (const Node& node : model.kinds[run.kind].nodes) {
      if (node.kind == Node::Kind::embedding) return full_name(run, node, run.first) + ".weight";
    }
  }
  return {};
}

bool names_layers(const Trainable& trainable) {
  return trainable.pattern.find_first_of("0123456789?[") != std::string::npos;
}

Trained trained(const Trainable& trainable,
                const LayerRun& run,
                const Node& node,
                std::int64_t number,
                std::string_view embedding) {
  if (trainable.kind == Trainable::Kind::all) return {};
  if (trainable.kind == Trainable::Kind::lora) return {.weight = false, .bias = false};
  const std::string name = full_name(run, node, number);
  const auto frozen = [&](std::string_view parameter) {
    return matches_any(trainable.pattern, parameter);
  };
  const bool module = frozen(name);
  // A tied weight has the name of the embedding, as in torch's named_parameters().
  const bool weight = node.tied ? frozen(embedding) : module || frozen(name + ".weight");
  return {.weight = !weight, .bias = !module && !frozen(name + ".bias")};
}

WideInt weight_count(const Node& node) {
  switch (node.kind) {
    case Node::Kind::linear:
    case Node::Kind::convolution:
    case Node::Kind::embedding:
      return node.tied ? 0 : node.in * node.out;
    case Node::Kind::parameters:
      return node.in;
    default:
      return 0;
  }
}

WideInt bias_count(const Node& node) {
  if (!node.bias) return 0;
  return node.kind == Node::Kind::parameters ? node.in : node.out;
}

bool is_adapted(const Trainable& trainable,
                const LayerRun& run,
                const Node& node,
                std::int64_t number) {
  if (trainable.kind != Trainable::Kind::lora || node.kind != Node::Kind::linear ||
      node.experts > 1)
    return false;
  if (trainable.pattern.empty()) {  // every linear of the layers, neither head nor router
    return node.component != Component::lm_head && node.component != Component::router &&
           !node.tied;
  }
  return matches_any(trainable.pattern, full_name(run, node, number));
}

Result<Trainable> Trainable::parse(std::string_view text) {
  const auto refuse = [&] {
    return Error{
        ErrorCode::invalid_argument,
        "is '" + printable(text) +
            "' but must be all, lora:RANK, lora:RANK:GLOB, or freeze:GLOB; several globs are "
            "separated by commas",
        "trainable"};
  };
  if (text == "all") return Trainable{};
  if (text.starts_with("freeze:") && text.size() > 7)
    return Trainable{Kind::freeze, std::string{text.substr(7)}, 0};
  if (!text.starts_with("lora:")) return refuse();
  text.remove_prefix(5);
  const auto colon = text.find(':');
  const auto rank = parse_int(text.substr(0, colon));
  if (!rank || *rank < 1 || *rank > (1 << 20)) return refuse();
  const std::string_view pattern = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  return Trainable{Kind::lora, std::string{pattern}, *rank};
}

ParameterCounts count_parameters(const Model& model, const Training& training) {
  const Trainable& trainable = training.trainable;
  ParameterCounts counts;
  counts.buffers = model.buffers;
  if (model.bare_parameters) {
    counts.total = counts.active = counts.trainable = *model.bare_parameters;
    return counts;
  }
  const std::string embedding = embedding_name(model);
  for (const LayerRun& run : model.runs) {
    if (run.mtp && training.mtp != Training::Mtp::on) continue;
    for (const Node& node : model.kinds[run.kind].nodes) {
      const WideInt weight = weight_count(node);
      const WideInt bias = bias_count(node);
      const WideInt one = weight + bias;
      if (node.kind == Node::Kind::embedding) counts.embedding += one * run.count;
      counts.total += one * node.experts * run.count;
      counts.active += one * node.active * run.count;
      if (trainable.kind == Trainable::Kind::all) {
        counts.trainable += one * node.experts * run.count;
        continue;
      }
      const std::int64_t step = names_layers(trainable) ? 1 : run.count;
      for (std::int64_t i = run.first; i < run.first + run.count; i += step) {
        const Trained parts = trained(trainable, run, node, i, embedding);
        if (parts.weight) counts.trainable += weight * node.experts * step;
        if (parts.bias) counts.trainable += bias * node.experts * step;
        if (is_adapted(trainable, run, node, i))
          counts.trainable += trainable.lora_rank * (node.in + node.out) * step;
      }
    }
  }
  return counts;
}

}  // namespace flopmeter
