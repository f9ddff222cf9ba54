// SPDX-License-Identifier: Apache-2.0
//
// The counted operators, by index: those of the catalog that the framework has, and those that
// users register.
#pragma once

#include <flopmeter/adapter_abi.h>
#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/counting/op_counter.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace flopmeter {

/// An operator as adapters see it, and what only the library needs.
struct OpEntry : FlopmeterOp {
  std::string name;  ///< of its rule: overloads and in-place forms share it
  std::uint16_t index = 0;
  const OpRule* rule = nullptr;  ///< null for an operator of a user
  std::atomic<const UserRule*> user{nullptr};
  bool hides_attention = false;

  /// Counts by this rule from now on.
  void set_user_rule(UserRule replacement);
};

/// The entry for an operator, created on first use; null if the table is full.  Entries live until
/// the process ends.  `rule` counts an operator that the catalog does not know by name.
OpEntry* find_or_add_op(std::string_view name_and_overload, const OpRule* rule = nullptr);
/// The entry with this index; null beyond the last.
const OpEntry* op_entry(std::size_t index);
std::size_t op_count();

}  // namespace flopmeter
