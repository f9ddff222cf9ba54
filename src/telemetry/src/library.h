// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/result.h>

#include <string>

namespace flopmeter {

/// A vendor library, loaded by name. It is never closed, because one of its calls may still hang.
class Library {
 public:
  static Result<Library> open(const std::string& name);

  /// Sets `function` to the symbol; false if the library does not have it.
  template <class Function>
  [[nodiscard]] bool find(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(address(symbol));  // NOLINT: required for dlsym
    return function != nullptr;
  }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  [[nodiscard]] void* address(const char* symbol) const;

  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace flopmeter
