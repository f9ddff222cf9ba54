// SPDX-License-Identifier: Apache-2.0
//
// Table lookups: no FLOPs, but bytes.  Rows that are used are read and written; indices have 8
// bytes.
#include <flopmeter/catalog/op_rule.h>

#include <array>

namespace flopmeter {
namespace {

constexpr int index_bits = 64;

/// weight [rows, width], indices; bags write one row each, otherwise every index does.
template <bool bags>
std::optional<OpCost> lookup(const OpCall& call) {
  const Arg weight = call.arg(0);
  const Arg indices = call.arg(1);
  const Arg offsets = call.arg(2);
  if (!weight.is_tensor(2) || !indices.is_tensor() || (bags && !offsets.is_tensor()))
    return std::nullopt;
  const WideInt read = indices.elements();
  const WideInt written = bags ? offsets.elements() : read;
  const WideInt bits = (read + written) * weight[1] * weight.bits() + read * index_bits;
  return OpCost{.executed = {}, .model = {}, .bytes = {bits / 8}};
}

/// grad [..., width], indices, rows of the table: all of them are written.
std::optional<OpCost> backward(const OpCall& call) {
  const Arg grad = call.arg(0);
  const Arg indices = call.arg(1);
  const Arg rows = call.arg(2);
  if (!grad.is_tensor() || grad.rank == 0 || !indices.is_tensor() || !rows.is_number())
    return std::nullopt;
  const WideInt bits = (grad.elements() + WideInt{rows.integer} * grad[-1]) * grad.bits() +
                       indices.elements() * index_bits;
  return OpCost{.executed = {}, .model = {}, .bytes = {bits / 8}};
}

constexpr std::array rules = {
    OpRule{.name = "aten::embedding", .flop_cost = lookup<false>, .offline = true},
    OpRule{.name = "aten::embedding_dense_backward", .flop_cost = backward, .offline = true},
    OpRule{.name = "aten::_embedding_bag", .flop_cost = lookup<true>, .offline = true},
    OpRule{.name = "aten::_embedding_bag_forward_only", .flop_cost = lookup<true>, .offline = true},
};

// Six indices into a table of ten rows of four: 24 elements read, 24 written, 48 bytes of indices.
constexpr std::array examples = {
    OpExample{.op = "aten::embedding", .call = "[10,4] int32[2,3] -1 0 0", .bytes = 240},
    OpExample{
        .op = "aten::embedding_dense_backward", .call = "[2,3,4] int32[2,3] 10 -1 0", .bytes = 304},
    // two bags: 8 elements written
    OpExample{.op = "aten::_embedding_bag",
              .call = "[10,4] int32[6] int32[2] 0 0 0 - 0 -1",
              .bytes = 176},
    OpExample{.op = "aten::_embedding_bag_forward_only",
              .call = "[10,4] int32[6] int32[2] 0 0 0 - 0 -1",
              .bytes = 176},
};

}  // namespace

extern constinit const OpFamily op_embedding{
    .name = "embedding",
    .help = "no FLOPs: a gather; rows read and written are its bytes",
    .source = "definition of torch.nn.Embedding",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
