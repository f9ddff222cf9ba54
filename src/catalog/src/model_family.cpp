// SPDX-License-Identifier: Apache-2.0
#include "../blocks/class_head.h"

#include <flopmeter/catalog/model_family.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <array>

namespace flopmeter {
namespace {

const ModelFamily* find_family(std::string_view type) {
  for (const ModelFamily* family : model_families()) {
    if (has_word(family->types, type)) return family;
  }
  return nullptr;
}

bool untyped(const Config& config) {
  return !config.has("model_type") && !config.has("architectures");
}

/// Family of a file without a type, by its keys.
std::string_view family_by_keys(const Config& config) {
  if (config.has("n_embd")) return "gpt2";
  return config.has("num_layers") && config.has("hidden_size") ? "megatron" : "";
}

/// Family of a configuration, by model_type, else by architecture, else by its keys.
const ModelFamily* family_of(const Config& config) {
  if (const auto* family = find_family(config.text_or({"model_type"}, ""))) return family;
  for (const std::string& architecture : config.texts({"architectures"})) {
    if (const auto* family = find_family(architecture)) return family;
  }
  return untyped(config) ? find_family(family_by_keys(config)) : nullptr;
}

/// Parameters of an unknown architecture: the number in the configuration, or that of a decoder
/// with its sizes (attention 4 h^2 and MLP 8 h^2 per layer, one embedding).
Model bare_model(const Config& config) {
  Model model;
  model.family = "unknown";
  model.facts.multimodal = config.has("vision_config");
  const Config text = config.has("text_config") ? config.child("text_config") : config;
  model.facts.layers = text.size_or({"num_hidden_layers", "n_layer", "num_layers"}, 1);
  model.facts.hidden = text.size_or({"hidden_size", "n_embd", "d_model"}, 1);
  const WideInt h = model.facts.hidden;
  const bool stated = config.has("num_parameters");
  if (stated) {
    model.bare_parameters = config.size({"num_parameters"});
  } else {
    const WideInt layers = text.size({"num_hidden_layers", "n_layer", "num_layers"});
    const WideInt vocab = text.size({"vocab_size"});
    model.bare_parameters =
        12 * layers * text.size({"hidden_size", "n_embd", "d_model"}) * h + vocab * h;
  }
  std::string type = config.text_or({"model_type"}, "");
  if (type.empty()) type = "none";
  model.notes.push_back("unknown architecture '" + printable(type) + "': " +
                        (stated ? "" : "parameters are those of a plain decoder of these sizes, ") +
                        "FLOPs are parameters x tokens x " +
                        (model.facts.multimodal ? "2.5" : "2") + " forward, without attention");
  return model;
}

std::string origin_name(const Config& config) {
  return printable(config.text_or({"_name", "_name_or_path", "model_type"}, "model"));
}

/// Words that name the training or file format of a checkpoint, which do not change its sizes.
bool names_a_tuning(std::string_view word) {
  constexpr std::array<std::string_view, 6> words = {"instruct", "chat", "base", "hf", "it", "pt"};
  return std::find(words.begin(), words.end(), word) != words.end();
}

enum class Tuning : std::uint8_t { kept, dropped };

/// A name without the owner before the slash.  A name starts with a letter, so the slash in
/// "Llama-3/3.1-8B" does not end an owner.
std::string_view without_owner(std::string_view name) {
  const std::size_t start = name.rfind('/') + 1;
  return start < name.size() && name[start] >= '0' && name[start] <= '9' ? name
                                                                         : name.substr(start);
}

/// Canonical form of a name: lower case, without the owner, separators, and the "Meta-" of some
/// LLaMA names.  Numbers stay separate: "opt-1.3b" differs from "opt-13b", and "qwen2-57b" from
/// "qwen2.5-7b".
std::string spelling(std::string_view name, Tuning tuning) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  name = without_owner(name);
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool upper = c >= 'A' && c <= 'Z';
    const bool point =
        c == '.' && i > 0 && i + 1 < name.size() && is_digit(name[i - 1]) && is_digit(name[i + 1]);
    const bool kept = upper || (c >= 'a' && c <= 'z') || is_digit(c) || point;
    text += !kept ? ' ' : upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  std::string joined;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = std::string_view{text}.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (tuning == Tuning::dropped && !joined.empty() && names_a_tuning(word)) continue;
    if (!joined.empty() && is_digit(joined.back()) && is_digit(word.front())) joined += '-';
    joined += word;
  }
  return joined.starts_with("metallama") ? joined.substr(4) : joined;
}

bool is_called(const EmbeddedFile& file, const std::string& wanted, Tuning tuning) {
  if (spelling(file.name, tuning) == wanted) return true;
  const auto config = Config::parse(file.text, file.name);
  if (!config) return false;
  const auto aliases = (*config).texts({"_aliases"});
  return std::any_of(aliases.begin(), aliases.end(), [&](const auto& alias) {
    return spelling(alias, tuning) == wanted;
  });
}

/// By its name, else by the name of the model it was tuned from.
const EmbeddedFile* find_known(std::string_view name) {
  const auto known = known_models();
  for (const Tuning tuning : {Tuning::kept, Tuning::dropped}) {
    const std::string wanted = spelling(name, tuning);
    const auto found = std::find_if(known.begin(), known.end(), [&](const auto& file) {
      return is_called(file, wanted, tuning);
    });
    if (found != known.end()) return &*found;
  }
  return nullptr;
}

/// Whether valid sizes have an excessive product.
bool is_absurd(const Model& model) {
  double parameters = 0;
  for (const LayerRun& run : model.runs) {
    for (const Node& node : model.kinds[run.kind].nodes) {
      parameters += static_cast<double>(node.in) *
                    static_cast<double>(std::max<WideInt>(node.out, 1)) *
                    static_cast<double>(node.experts) * static_cast<double>(run.count);
    }
  }
  return parameters > 1e18;
}

}  // namespace

Result<Model> build_model(const Config& config) {
  const ModelFamily* family = family_of(config);
  Model model = family == nullptr ? bare_model(config) : family->build(config);
  if (const auto status = config.status(); !status) return status.error();
  if (is_absurd(model)) {
    config.fail("the sizes result in more than 10^18 parameters");
    return config.status().error();
  }
  if (family != nullptr) {
    model.family = family->name;
    if (!family->own_heads) replace_head(model, config, family->types);
    if (untyped(config))
      model.notes.push_back("no key 'model_type': read as " + model.family +
                            " because of its other keys");
  }
  if (config.has("_parameters")) model.buffers = config.count_or({"_buffers"}, 0);
  if (model.name.empty()) model.name = origin_name(config);
  return model;
}

Result<Model> find_model(std::string_view name) {
  if (const EmbeddedFile* file = find_known(name)) {
    const auto config = Config::parse(file->text, file->name);
    if (!config) return config.error();
    auto model = build_model(*config);
    if (model) (*model).name = file->name;
    return model;
  }
  std::vector<std::string_view> names;
  for (const EmbeddedFile& file : known_models()) names.push_back(file.name);
  return Error{ErrorCode::invalid_argument,
               "unknown model '" + printable(name) + "'" +
                   did_you_mean(without_owner(name), names) +
                   "; `flopmeter models` lists them, or use a config.json"};
}

Result<Model> model_of(const ModelSource& source) {
  if (source.config.empty()) return find_model(source.name);
  const auto config = Config::parse(source.config, "run.json");
  if (!config) return config.error();
  return build_model(*config);
}

}  // namespace flopmeter
