// SPDX-License-Identifier: Apache-2.0
#include "library.h"

#include <dlfcn.h>

namespace flopmeter {

Result<Library> Library::open(const std::string& name) {
  Library library;
  library.name_ = name;
  library.handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library.handle_ == nullptr) return Error{ErrorCode::not_found, name + " not found"};
  return library;
}

void* Library::address(const char* symbol) const {
  return dlsym(handle_, symbol);
}

}  // namespace flopmeter
