// SPDX-License-Identifier: Apache-2.0
//
// Calls of fused attention operators: the positions of their arguments, and the mask that they
// specify.
//
// Lengths of packed sequences are in tensors.  If all sequences are as long as the longest, the
// pairs are known; otherwise the longest is an upper bound, and they are marked unknown until the
// values of the tensors are.
#pragma once

#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/catalog/operations.h>

#include <algorithm>
#include <array>

namespace flopmeter {

/// Positions of an operator's arguments; -1: none.
struct AttentionPlaces {
  int query = 0;     ///< keys and values follow
  int mask = -1;     ///< a tensor of masks or biases
  int starts = -1;   ///< starts of packed sequences of queries, then of keys
  int longest = -1;  ///< the longest of them, queries and keys
  int used = -1;     ///< a tensor of the number of used queries or keys
  int pages = -1;    ///< a tensor of pages: keys are a pool of unrelated shape
  int chunk = -1;    ///< a size of chunks; 0 is none
  int causal = -1;   ///< 1: aligned at the first position or by `bottom_right`, 2: at the last
  int window = -1;   ///< keys to the left, then to the right, of a query; negative is unlimited
  int causal_window = -1;  ///< keys to the left, the query's own included; 0 is unlimited
  int value_query = -1;    ///< queries that also multiply the values: not supported
  int mask_program = -1;   ///< set if a function or block mask selects pairs: the rest is a bound
  bool bottom_right = false;
  bool heads_first = false;  ///< [batch, heads, length, size], else [batch, length, heads, size]
  bool backward = false;
};

inline AttentionBand attention_band(const OpCall& call, const AttentionPlaces& at) {
  // A mask program replaces the causal mask and the window.
  if (call.arg(at.mask_program).kind != Arg::Kind::none) return {};
  const std::int64_t causal = call.arg(at.causal).number_or(0);
  AttentionBand band{.bottom_right = at.bottom_right || causal == 2};
  if (at.window >= 0) {
    band.left = call.arg(at.window).number_or(-1);
    band.right = call.arg(at.window + 1).number_or(-1);
  }
  if (causal != 0) band.right = 0;
  if (const std::int64_t size = call.arg(at.causal_window).number_or(0); size > 0)
    band.left = size - 1;
  return band;
}

/// Fused kernels recompute the scores in the backward pass, and read and write twice as much as
/// forward.
inline OpCost cost_of(const Attention& op, Dtype dtype, bool backward, AttentionPairs known) {
  const Bytes bytes = bytes_moved(op, dtype);
  if (!backward) return {.executed = flops(op), .model = flops(op), .bytes = bytes, .pairs = known};
  return {.executed = flash_backward_flops(op),
          .model = model_backward_flops(op),
          .bytes = 2 * bytes,
          .pairs = known};
}

inline std::optional<OpCost> attention_cost(const OpCall& call, const AttentionPlaces& at) {
  const Arg q = call.arg(at.query);
  const Arg k = call.arg(at.query + 1);
  const Arg v = call.arg(at.query + 2);
  if (!q.is_tensor() || !k.is_tensor(q.rank) || !v.is_tensor(q.rank)) return std::nullopt;
  if (q.rank != 4 && q.rank != 3) return std::nullopt;
  if (call.arg(at.pages).is_tensor() || call.arg(at.value_query).is_tensor()) return std::nullopt;
  if (call.arg(at.chunk).number_or(0) > 0) return std::nullopt;
  const int heads = at.heads_first && q.rank == 4 ? -3 : -2;
  const int length = heads == -3 ? -2 : -3;
  const WideInt batch = q.rank == 4 ? q[0] : 1;
  Attention op{.heads = q[heads],
               .kv_heads = k[heads],
               .d_qk = q[-1],
               .d_v = v[-1],
               .queries = batch * q[length],
               .keys = (k.rank == 4 ? k[0] : 1) * WideInt{k[length]}};
  AttentionPairs known = AttentionPairs::exact;
  const AttentionBand band = attention_band(call, at);

  const Arg starts = call.arg(at.starts);
  const Arg max_q = call.arg(at.longest);
  const Arg max_k = call.arg(at.longest + 1);
  const bool has_starts = starts.is_tensor(1) && starts[0] > 0;
  const bool has_longest = max_q.is_number() && max_k.is_number();
  if (has_starts && (has_longest || q.rank == 3 || q[0] == 1)) {
    // Some libraries do not pass the longest length: no sequence is longer than all together.
    const WideInt sequences = starts[0] - 1;
    const std::int64_t longest_q = max_q.is_number() ? max_q.integer : q[length];
    const std::int64_t longest_k = max_k.is_number() ? max_k.integer : k[length];
    op.pairs = std::min({sequences * band.pairs(longest_q, longest_k),
                         op.queries * longest_k,
                         op.keys * longest_q});
    const bool even =
        has_longest && op.queries == sequences * longest_q && op.keys == sequences * longest_k;
    if (!even) known = AttentionPairs::unknown;
  } else {
    if (q.rank != 4 || (has_starts && starts[0] != q[0] + 1)) return std::nullopt;
    op.pairs = batch * band.pairs(q[length], k[length]);
    if (has_starts) known = AttentionPairs::unknown;  // starts inside padded rows
  }
  if (call.arg(at.used).is_tensor() || call.arg(at.mask_program).kind != Arg::Kind::none)
    known = AttentionPairs::unknown;
  // With a mask tensor, all pairs are computed.
  const Arg mask = call.arg(at.mask);
  if (mask.is_tensor() && mask.rank > 0 && mask.elements() > 0) known = AttentionPairs::full;

  return cost_of(op, q.dtype, at.backward, known);
}

/// Of a call that attention_cost() supports.
template <AttentionPlaces at>
std::optional<PackedWork> packed_attention(const OpCall& call) {
  if (at.starts < 0 || !call.arg(at.starts).is_tensor(1) || !call.arg(at.starts + 1).is_tensor(1))
    return std::nullopt;
  if (call.arg(at.used).is_tensor() || call.arg(at.mask_program).kind != Arg::Kind::none)
    return std::nullopt;
  const Arg q = call.arg(at.query);
  const int heads = at.heads_first && q.rank == 4 ? -3 : -2;
  const Attention one{
      .pairs = 1, .heads = q[heads], .d_qk = q[-1], .d_v = call.arg(at.query + 2)[-1]};
  return PackedWork{.queries_at = at.starts,
                    .keys_at = at.starts + 1,
                    .unit = cost_of(one, q.dtype, at.backward, AttentionPairs::exact),
                    .band = attention_band(call, at),
                    .backward = at.backward};
}

template <AttentionPlaces at>
std::optional<OpCost> add_attention(const OpCall& call) {
  return attention_cost(call, at);
}

/// A rule whose compute dtype is that of the queries.
template <AttentionPlaces at>
constexpr OpRule attention_rule(std::string_view name) {
  return {.name = name,
          .flop_cost = add_attention<at>,
          .dtype_argument = at.query,
          .packed = packed_attention<at>};
}

/// The position of a parameter by its name in flash-attn, its forks, and xFormers.
template <AttentionPlaces at>
int attention_place(std::string_view parameter) {
  struct Named {
    std::string_view names;
    int place;
  };
  constexpr auto second = [](int first) { return first < 0 ? -1 : first + 1; };
  constexpr auto known = std::to_array<Named>({
      {"q query", at.query},
      {"k key", at.query + 1},
      {"v value", at.query + 2},
      {"cu_seqlens_q cu_seq_lens_q cum_seq_q seqstart_q", at.starts},
      {"cu_seqlens_k cu_seqlens_kv cu_seq_lens_k cum_seq_k seqstart_k", second(at.starts)},
      {"max_seqlen_q max_seq_len_q max_q", at.longest},
      {"max_seqlen_k max_seqlen_kv max_seq_len_k max_k", second(at.longest)},
      {"seqused_q seqused_k sequed_q sequed_k seqlen_k seqlen_kv", at.used},
      {"block_table block_table_ block_tables page_table", at.pages},
      {"attention_chunk", at.chunk},
      {"causal is_causal", at.causal},
      {"window_size_left window_left", at.window},
      {"window_size_right window_right", second(at.window)},
      {"qv q_v", at.value_query},
      {"mask_mod block_sparse_tensors gather_kv_indices", at.mask_program},
  });
  for (const auto& [names, place] : known) {
    if (place_in_list(names, parameter) >= 0) return place;
  }
  return -1;
}

/// The same for an operator of another library, whose arguments move between versions.
template <AttentionPlaces at>
constexpr OpRule library_attention_rule(std::string_view name) {
  OpRule rule = attention_rule<at>(name);
  rule.place_of = attention_place<at>;
  return rule;
}

/// Positions of attention functions that are found by the names of their parameters.
inline constexpr AttentionPlaces named_attention{.query = 0,
                                                 .starts = 3,
                                                 .longest = 5,
                                                 .used = 7,
                                                 .pages = 8,
                                                 .chunk = 9,
                                                 .causal = 10,
                                                 .window = 11,
                                                 .value_query = 14,
                                                 .mask_program = 13,
                                                 .bottom_right = true};
consteval AttentionPlaces backward_of(AttentionPlaces at) {
  at.backward = true;
  return at;
}

}  // namespace flopmeter
