// SPDX-License-Identifier: Apache-2.0
//
// Model families by the names configurations use for them.  To add one, add a file to
// catalog/models.
#pragma once

#include <flopmeter/catalog/config.h>
#include <flopmeter/catalog/model.h>
#include <flopmeter/core/embedded_file.h>

#include <span>
#include <string_view>

namespace flopmeter {

/// A configuration worked out by hand, run as a test.
struct ModelExample {
  std::string_view config;  ///< JSON
  WideInt parameters = 0;
  std::int64_t seq_len = 0;
  WideInt training_flops = 0;  ///< one sequence, model-v1
};

struct ModelFamily {
  std::string_view name;
  std::string_view help;
  /// Values of `model_type` and `architectures` that it reads.
  std::span<const std::string_view> types;
  /// Problems are kept in the Config.
  Model (*build)(const Config& config) = nullptr;
  ModelExample example;
};

std::span<const ModelFamily* const> model_families();

/// The model that a configuration describes.  An architecture that no family knows becomes a bare
/// number of parameters, with a note.
Result<Model> build_model(const Config& config);

/// Well-known models, each the text of a config.json: catalog/configs.
std::span<const EmbeddedFile> known_models();

/// A well-known model by name ("llama-3-8b", "LLAMA3_8B", "meta-llama/Meta-Llama-3-8B"): owner,
/// case and punctuation do not matter; near misses are suggested.
Result<Model> find_model(std::string_view name);

}  // namespace flopmeter
