// SPDX-License-Identifier: Apache-2.0
#include "model_argument.h"

#include "command.h"

#include <flopmeter/core/text.h>

#include <filesystem>

namespace flopmeter {
namespace {

std::optional<std::int64_t> positions(const Config& config) {
  const Config text = config.has("text_config") ? config.child("text_config") : config;
  const std::int64_t longest =
      text.count_or({"max_position_embeddings", "n_positions", "seq_length", "max_seq_len"}, 0);
  return longest > 0 ? std::optional{longest} : std::nullopt;
}

}  // namespace

Result<ModelArgument> read_model(const std::string& text) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::string path = text;
  if (fs::is_directory(path, ignored)) path += "/config.json";
  const bool file = text == "-" || text.ends_with(".json") || fs::exists(path, ignored);
  if (!file) {
    auto model = find_model(text);
    if (!model) return model.error();
    return ModelArgument{*std::move(model), {}};
  }
  const auto content = read_text(path);
  if (!content) return content.error();
  const auto config = Config::parse(*content, text == "-" ? "standard input" : path);
  if (!config) return config.error();
  auto model = build_model(*config);
  if (!model) return model.error();
  return ModelArgument{*std::move(model), positions(*config)};
}

}  // namespace flopmeter
