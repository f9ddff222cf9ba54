// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/flop_counter.h>

namespace flopmeter {

FlopTotals operator-(const FlopTotals& after, const FlopTotals& before) {
  FlopTotals d = after;
  for (std::size_t t = 0; t < dtype_count; ++t) {
    for (std::size_t p = 0; p < pass_count; ++p) {
      d.executed[t][p] -= before.executed[t][p];
      d.model[t][p] -= before.model[t][p];
    }
  }
  d.calls -= before.calls;
  d.unsupported_op_calls -= before.unsupported_op_calls;
  d.replicated -= before.replicated;
  d.bounded -= before.bounded;
  for (std::size_t i = 0; i < d.attention_calls.size(); ++i)
    d.attention_calls[i] -= before.attention_calls[i];
  return d;
}

}  // namespace flopmeter
