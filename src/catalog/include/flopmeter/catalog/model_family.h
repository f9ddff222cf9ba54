// SPDX-License-Identifier: Apache-2.0
//
// Model families, by the names that configurations use for them.  To add one, add a file to
// src/catalog/models.
#pragma once

#include <flopmeter/catalog/config.h>
#include <flopmeter/catalog/model.h>
#include <flopmeter/core/embedded_file.h>
#include <flopmeter/core/run_metadata.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace flopmeter {

/// Example computed by hand; a test compares it with the family's model.
struct ModelExample {
  std::string_view config;  ///< JSON
  WideInt parameters = 0;
  std::int64_t seq_len = 0;
  WideInt training_flops = 0;  ///< one sequence, model-v1
};

/// How the tests draw random configurations of a family and compute their FLOPs independently, with
/// Megatron's closed form.  The defaults describe LLaMA.
struct RandomConfig {
  enum class Ffn : std::uint8_t { own, half, four_hidden };  ///< width, from `intermediate_size`
  enum class Experts : std::uint8_t { none, of_mlp_width, of_own_width };
  enum class Shared : std::uint8_t { none, one, several, of_own_width };

  std::string_view type = {};  ///< `model_type`; empty: the first of the family's types
  bool grouped = true;         ///< the number of key heads is separate
  bool gated = true;
  Ffn ffn = Ffn::own;
  bool latent = false;  ///< latent attention
  Experts experts = Experts::none;
  Shared shared = Shared::none;     ///< shared experts
  bool first_dense = false;         ///< the first layers have no experts
  bool recurrent = false;           ///< mixes kinds of layers; the closed form does not apply
  bool mixer_only = false;          ///< neither attention nor an MLP
  bool bidirectional = false;       ///< encoder: all pairs count, a linear layer precedes the head
  std::string_view text_type = {};  ///< `model_type` of a nested text configuration
  std::string_view keys = {};       ///< further keys, as JSON members
};

struct ModelFamily {
  std::string_view name;
  std::string_view help;
  /// Values of `model_type` and `architectures` that the family reads, separated by spaces.
  std::string_view types;
  bool own_heads = false;  ///< `build` reads the head of the class; else `build_model` replaces it
  /// Errors are kept in the Config.
  Model (*build)(const Config& config) = nullptr;
  RandomConfig random_config = {};
  ModelExample example;
};

std::span<const ModelFamily* const> model_families();

/// Model that a configuration describes.  An unknown architecture becomes a bare number of
/// parameters, with a note.
Result<Model> build_model(const Config& config);

/// Known models, each the text of a config.json in src/catalog/configs.
std::span<const EmbeddedFile> known_models();

/// Known model by name ("llama-3-8b", "LLAMA3_8B", "meta-llama/Meta-Llama-3-8B").  Owner, case, and
/// punctuation are ignored; the error suggests similar names.
Result<Model> find_model(std::string_view name);

/// The model of a stored run.
Result<Model> model_of(const ModelSource& source);

}  // namespace flopmeter
