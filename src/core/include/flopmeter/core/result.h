// SPDX-License-Identifier: Apache-2.0
//
// Result<T>: a value, or the Error that explains its absence.  The member names are those of
// std::expected, which libstdc++ 12 has only in C++23 mode, so that one may replace the other.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace flopmeter {

enum class ErrorCode { invalid_argument, not_found, parse_error, io_error, unsupported };

struct Error {
  ErrorCode code = ErrorCode::invalid_argument;
  /// One clause.  If there is a parameter, it is the subject of the clause: "must be positive".
  std::string message;
  /// Argument at fault, in snake_case.  The CLI renders it as --seq-len, Python as seq_len=.
  std::string parameter = {};

  /// The whole sentence, for a reader who passed no arguments.
  [[nodiscard]] std::string text() const {
    return parameter.empty() ? message : parameter + " " + message;
  }
};

template <class T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose: `return value;` and `return Error{...};` both read naturally.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  T& operator*() & { return get(); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(get()); }
  T* operator->() { return &get(); }

  [[nodiscard]] const Error& error() const {
    assert(!has_value());
    return *std::get_if<1>(&state_);
  }

 private:
  T& get() {
    assert(has_value());
    return *std::get_if<0>(&state_);
  }

  std::variant<T, Error> state_;
};

/// Success without a value: `return {};`.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : error_(std::move(error)) {}

  [[nodiscard]] bool has_value() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }

  [[nodiscard]] const Error& error() const {
    assert(!has_value());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace flopmeter
