// SPDX-License-Identifier: Apache-2.0
//
// The operators that are counted, by index: those of the catalog that this torch has, and those
// that users add.
#pragma once

#include "thread_counters.h"

#include <flopmeter/torch/op_counter.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace flopmeter::torch_adapter {

/// What fp32 work of an operator may run as: the setting to ask depends on it.
enum class Precision : std::uint8_t { matmul, convolution, recurrent };

struct OpEntry {
  std::string name;  ///< its rule's: overloads and in-place forms share it
  std::uint16_t index = 0;
  const OpRule* rule = nullptr;  ///< null for a user's operator
  std::atomic<const UserRule*> user{nullptr};
  Precision precision = Precision::matmul;
  bool hides_attention = false;  ///< its rule does
};

/// The entry for an operator, made on first use; null when the table is full.  Entries live for
/// ever.
OpEntry* find_or_add_op(std::string_view name_and_overload);
/// The entry with this index; null beyond the last.
const OpEntry* op_entry(std::size_t index);
std::size_t op_count();

}  // namespace flopmeter::torch_adapter
