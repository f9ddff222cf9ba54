// SPDX-License-Identifier: Apache-2.0
//
// Config: a model's config.json, as its family reads it.  Keys may be nested, missing, or spelled
// differently by each family.  The first missing or invalid key is kept as the error, so that
// callers do not check every key.
#pragma once

#include <flopmeter/core/result.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// JSON object of a configuration file.  Copies share the file and its error.  Not thread-safe.
class Config {
 public:
  using Keys =
      std::initializer_list<std::string_view>;  ///< spellings of one key, the most common first

  /// `origin` names the text in messages: a file or a model.
  static Result<Config> parse(std::string_view text, std::string_view origin);

  /// A positive integer.  A missing key is an error.
  [[nodiscard]] std::int64_t size(Keys keys) const;
  /// A positive integer, or `otherwise` if missing or null.
  [[nodiscard]] std::int64_t size_or(Keys keys, std::int64_t otherwise) const;
  /// A positive integer or 0, or `otherwise` if missing or null.
  [[nodiscard]] std::int64_t count_or(Keys keys, std::int64_t otherwise) const;
  [[nodiscard]] bool flag_or(Keys keys, bool otherwise) const;
  [[nodiscard]] double number_or(Keys keys, double otherwise) const;
  [[nodiscard]] std::string text_or(Keys keys, std::string_view otherwise) const;
  [[nodiscard]] std::vector<std::int64_t> counts(Keys keys) const;  ///< empty if missing
  /// A list of positive integers, or one; empty if missing.
  [[nodiscard]] std::vector<std::int64_t> sizes(Keys keys) const;
  [[nodiscard]] std::vector<std::string> texts(Keys keys) const;  ///< empty if missing

  /// Present and not null.
  [[nodiscard]] bool has(std::string_view key) const;
  /// Present and null: differs from missing if the class has a default.
  [[nodiscard]] bool is_null(std::string_view key) const;
  /// A nested object; empty if missing.
  [[nodiscard]] Config child(std::string_view key) const;

  /// Keeps an error of the caller, one clause.
  void fail(std::string_view what) const;
  /// The first error, if any.
  [[nodiscard]] Result<void> status() const;

 private:
  struct State;
  Config(std::shared_ptr<State> state, const void* node, std::string path)
      : state_(std::move(state)), node_(node), path_(std::move(path)) {}
  [[nodiscard]] const void* find(Keys keys) const;
  [[nodiscard]] std::int64_t integer(Keys keys, const void* value, std::int64_t least) const;

  std::shared_ptr<State> state_;
  const void* node_;  ///< node of the JSON library, whose types are not in this header
  std::string path_;
};

}  // namespace flopmeter
