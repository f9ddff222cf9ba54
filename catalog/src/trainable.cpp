// SPDX-License-Identifier: Apache-2.0
#include "batch_sizes.h"

#include <flopmeter/catalog/pricing.h>
#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

std::string full_name(const LayerRun& run, const Node& node, std::int64_t number) {
  std::string name = run.prefix;
  if (run.numbered) name.append(std::to_string(number)).push_back('.');
  return name.append(node.name);
}

}  // namespace

bool is_trainable(const Trainable& trainable,
                  const LayerRun& run,
                  const Node& node,
                  std::int64_t number) {
  if (trainable.kind == Trainable::Kind::all) return true;
  if (trainable.kind == Trainable::Kind::lora) return false;
  const std::string name = full_name(run, node, number);
  return !glob_match(trainable.pattern, name) && !glob_match(trainable.pattern, name + ".weight");
}

bool is_adapted(const Trainable& trainable,
                const LayerRun& run,
                const Node& node,
                std::int64_t number) {
  if (trainable.kind != Trainable::Kind::lora || node.kind != Node::Kind::linear ||
      node.experts > 1)
    return false;
  if (trainable.pattern.empty()) {  // every linear of the layers, neither head nor router
    return node.component != Component::lm_head && node.component != Component::router;
  }
  return glob_match(trainable.pattern, full_name(run, node, number));
}

Result<Trainable> Trainable::parse(std::string_view text) {
  const auto refuse = [&] {
    return Error{ErrorCode::invalid_argument,
                 "--trainable '" + printable(text) +
                     "': expected all, lora:RANK, lora:RANK:GLOB or freeze:GLOB"};
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
  if (model.bare_parameters) {
    counts.total = counts.active = counts.trainable = *model.bare_parameters;
    return counts;
  }
  for (const LayerRun& run : model.runs) {
    if (run.mtp && !training.mtp) continue;
    for (const Node& node : model.kinds[run.kind].nodes) {
      WideInt one = 0;
      switch (node.kind) {
        case Node::Kind::linear:
        case Node::Kind::convolution:
          one = (node.tied ? 0 : node.in * node.out) + (node.bias ? node.out : 0);
          break;
        case Node::Kind::parameters:
          one = node.in;
          break;
        case Node::Kind::embedding:
          one = node.in * node.out;
          counts.embedding += one * run.count;
          break;
        default:
          break;
      }
      counts.total += one * node.experts * run.count;
      counts.active += one * node.active * run.count;
      for (std::int64_t i = 0; i < run.count; ++i) {
        if (trainable.kind == Trainable::Kind::all) {
          counts.trainable += one * node.experts * run.count;
          break;
        }
        if (is_trainable(trainable, run, node, run.first + i))
          counts.trainable += one * node.experts;
        if (is_adapted(trainable, run, node, run.first + i))
          counts.trainable += trainable.lora_rank * (node.in + node.out);
      }
    }
  }
  return counts;
}

}  // namespace flopmeter
