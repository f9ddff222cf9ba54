// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/catalog/convention.h>
#include <flopmeter/core/text.h>

namespace flopmeter {

const Convention* find_convention(std::string_view name) {
  for (const Convention* convention : conventions()) {
    if (convention->name == name) return convention;
  }
  return nullptr;
}

Result<const Convention*> convention_called(std::string_view name) {
  if (const Convention* known = find_convention(name)) return known;
  std::vector<std::string_view> names;
  for (const Convention* convention : conventions()) names.push_back(convention->name);
  return Error{ErrorCode::invalid_argument,
               "unknown convention '" + printable(name) + "'" + did_you_mean(name, names) +
                   "; `flopmeter conventions` lists them"};
}

}  // namespace flopmeter
