// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/result.h>

#include <string>

namespace flopmeter {

/// A vendor's library, opened by name.  It is never closed: one of its calls may still hang.
class Library {
 public:
  static Result<Library> open(const std::string& name);

  /// Sets `function` to the symbol; false where the library has none.
  template <class Function>
  [[nodiscard]] bool find(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(address(symbol));  // NOLINT: what dlsym is for
    return function != nullptr;
  }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  [[nodiscard]] void* address(const char* symbol) const;

  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace flopmeter
