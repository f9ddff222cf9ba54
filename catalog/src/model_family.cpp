// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/catalog/model_family.h>
#include <flopmeter/core/text.h>

#include <algorithm>

namespace flopmeter {
namespace {

const ModelFamily* find_family(std::string_view type) {
  for (const ModelFamily* family : model_families()) {
    if (std::find(family->types.begin(), family->types.end(), type) != family->types.end())
      return family;
  }
  return nullptr;
}

/// The family that a configuration names, by model_type or else by architecture.
const ModelFamily* family_of(const Config& config) {
  if (const auto* family = find_family(config.text_or({"model_type"}, ""))) return family;
  for (const std::string& architecture : config.texts({"architectures"})) {
    if (const auto* family = find_family(architecture)) return family;
  }
  return nullptr;
}

/// Parameters of an architecture nobody described: what the configuration says, or those of a
/// decoder with its sizes (attention 4 h^2, MLP 8 h^2 a layer, one embedding).
Model bare_model(const Config& config) {
  Model model;
  model.family = "unknown";
  model.facts.multimodal = config.has("vision_config");
  const Config text = config.has("text_config") ? config.child("text_config") : config;
  model.facts.layers = text.size_or({"num_hidden_layers", "n_layer", "num_layers"}, 1);
  model.facts.hidden = text.size_or({"hidden_size", "n_embd", "d_model"}, 1);
  const WideInt h = model.facts.hidden;
  if (config.has("num_parameters")) {
    model.bare_parameters = config.size({"num_parameters"});
  } else {
    const WideInt layers = text.size({"num_hidden_layers", "n_layer", "num_layers"});
    const WideInt vocab = text.size({"vocab_size"});
    model.bare_parameters =
        12 * layers * text.size({"hidden_size", "n_embd", "d_model"}) * h + vocab * h;
  }
  std::string type = config.text_or({"model_type"}, "");
  if (type.empty()) type = "none";
  model.notes.push_back(
      "architecture '" + printable(type) + "' is not known: FLOPs are parameters x tokens x " +
      (model.facts.multimodal ? "2.5" : "2") + " forward, attention is not counted");
  return model;
}

std::string origin_name(const Config& config) {
  return printable(config.text_or({"_name", "_name_or_path", "model_type"}, "model"));
}

/// A name as people vary it: letters and digits only, in lower case, without the owner before a
/// slash and the "Meta-" that some LLaMA names begin with.
std::string spelling(std::string_view name) {
  std::string letters;
  for (const char c : name.substr(name.rfind('/') + 1)) {
    if (c >= 'A' && c <= 'Z') letters += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) letters += c;
  }
  return letters.starts_with("metallama") ? letters.substr(4) : letters;
}

bool is_alias(const EmbeddedFile& file, std::string_view wanted) {
  const auto config = Config::parse(file.text, file.name);
  if (!config) return false;
  const auto aliases = (*config).texts({"_aliases"});
  return std::any_of(
      aliases.begin(), aliases.end(), [&](const auto& alias) { return spelling(alias) == wanted; });
}

const EmbeddedFile* find_known(std::string_view name) {
  const std::string wanted = spelling(name);
  const auto known = known_models();
  auto found = std::find_if(
      known.begin(), known.end(), [&](const auto& file) { return spelling(file.name) == wanted; });
  if (found == known.end()) {
    found = std::find_if(
        known.begin(), known.end(), [&](const auto& file) { return is_alias(file, wanted); });
  }
  return found == known.end() ? nullptr : &*found;
}

/// Sizes that are each in range may still multiply to what no integer holds.
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
    config.fail("the sizes make more than 10^18 parameters, so no model configuration");
    return config.status().error();
  }
  if (family != nullptr) model.family = family->name;
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
  return Error{ErrorCode::not_found,
               "no model is called '" + printable(name) + "'" + did_you_mean(name, names) +
                   "; 'flopmeter models' lists them, or give a config.json"};
}

}  // namespace flopmeter
