// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/catalog/convention.h>

namespace flopmeter {

const Convention* find_convention(std::string_view name) {
  for (const Convention* convention : conventions()) {
    if (convention->name == name) return convention;
  }
  return nullptr;
}

}  // namespace flopmeter
