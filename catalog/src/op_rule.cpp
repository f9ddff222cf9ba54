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

const OpRule* find_exactly(std::string_view name) {
  static const std::vector<const OpRule*>& rules = *new std::vector<const OpRule*>(sorted_rules());
  const auto at = std::lower_bound(
      rules.begin(), rules.end(), name, [](const OpRule* rule, std::string_view wanted) {
        return rule->name < wanted;
      });
  return at != rules.end() && (*at)->name == name ? *at : nullptr;
}

}  // namespace

const OpRule* find_op_rule(std::string_view name) {
  if (const OpRule* rule = find_exactly(name)) return rule;
  std::string_view base = name.substr(0, name.find('.'));
  if (const OpRule* rule = find_exactly(base)) return rule;
  if (!base.ends_with('_')) return nullptr;
  base.remove_suffix(1);
  return find_exactly(base);
}

}  // namespace flopmeter
