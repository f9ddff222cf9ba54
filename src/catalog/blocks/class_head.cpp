// SPDX-License-Identifier: Apache-2.0
#include "class_head.h"

#include <flopmeter/core/text.h>

#include <algorithm>
#include <array>

namespace flopmeter {
namespace {

/// Whether `name` is the class without a head of a family: "LlamaModel" of "LlamaForCausalLM".
bool is_base_class(std::string_view name, std::string_view types) {
  constexpr std::string_view ending = "Model";
  if (!name.ends_with(ending)) return false;
  std::string stem{name.substr(0, name.size() - ending.size())};
  if (stem.ends_with("Text")) stem.resize(stem.size() - 4);  // of a multimodal family
  static constexpr auto heads = std::to_array<std::string_view>(
      {"ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForConditionalGeneration"});
  return std::any_of(heads.begin(), heads.end(), [&](std::string_view head) {
    return has_word(types, stem + std::string{head});
  });
}

bool scores_words(const Node& node) {
  return node.kind == Node::Kind::linear && node.component == Component::lm_head;
}

}  // namespace

ClassHead read_class_head(const Config& config, std::string_view types) {
  struct Name {
    std::string_view ending;
    Head head;
  };
  static constexpr auto names = std::to_array<Name>({{"ForCausalLM", Head::words},
                                                     {"LMHeadModel", Head::words},
                                                     {"ForConditionalGeneration", Head::words},
                                                     {"ForMaskedLM", Head::words},
                                                     {"ForPreTraining", Head::words_and_pair},
                                                     {"ForSequenceClassification", Head::sequence},
                                                     {"ForTokenClassification", Head::tokens},
                                                     {"ForQuestionAnswering", Head::answer}});
  const auto classes = config.texts({"architectures"});
  if (classes.empty() || has_word(types, classes.front())) return {};
  const std::string& own = classes.front();
  const auto known = std::find_if(
      names.begin(), names.end(), [&](const Name& name) { return own.ends_with(name.ending); });
  if (known != names.end()) return {.head = known->head, .note = {}};
  if (is_base_class(own, types)) return {.head = Head::none, .note = {}};
  return {.head = Head::words,
          .note = "the head of '" + printable(own) + "' is unknown: counted as a head for words"};
}

std::int64_t read_labels(const Config& config) {
  const Config names = config.child("id2label");
  std::int64_t labels = 0;
  while (names.has(std::to_string(labels))) ++labels;
  return config.size_or({"num_labels"}, labels > 0 ? labels : 2);
}

void replace_head(Model& model, const Config& config, std::string_view types) {
  ClassHead own = read_class_head(config, types);
  if (!own.note.empty()) model.notes.push_back(std::move(own.note));
  if (own.head == Head::words || own.head == Head::words_and_pair) return;
  const auto run = std::find_if(model.runs.begin(), model.runs.end(), [&](const LayerRun& each) {
    const auto& nodes = model.kinds[each.kind].nodes;
    return std::any_of(nodes.begin(), nodes.end(), scores_words);
  });
  if (run == model.runs.end()) return;
  if (own.head == Head::none) {
    model.runs.erase(run);
    return;
  }
  auto& nodes = model.kinds[run->kind].nodes;
  Node& scores = *std::find_if(nodes.begin(), nodes.end(), scores_words);
  const bool answer = own.head == Head::answer;
  scores.name = answer ? "qa_outputs" : "score";
  scores.out = answer ? 2 : read_labels(config);
  scores.bias = own.head != Head::sequence;
  scores.tied = false;
}

}  // namespace flopmeter
