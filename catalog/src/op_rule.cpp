// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/catalog/op_rule.h>

#include <algorithm>
#include <vector>

namespace flopmeter {
namespace {

std::vector<const OpRule*> sorted_rules() {
  std::vector<const OpRule*> rules;
  for (const OpFamily* family : op_families()) {
    for (const OpRule& rule : family->rules) rules.push_back(&rule);
  }
  std::sort(rules.begin(), rules.end(), [](const OpRule* a, const OpRule* b) {
    return a->name < b->name;
  });
  return rules;
}

}  // namespace

const OpRule* find_op_rule(std::string_view name) {
  static const std::vector<const OpRule*>& rules = *new std::vector<const OpRule*>(sorted_rules());
  const std::string_view base = name.substr(0, name.find('.'));
  const auto at = std::lower_bound(
      rules.begin(), rules.end(), base, [](const OpRule* rule, std::string_view wanted) {
        return rule->name < wanted;
      });
  return at != rules.end() && (*at)->name == base ? *at : nullptr;
}

}  // namespace flopmeter
