// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/catalog/operations.h>

#include <algorithm>
#include <array>
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

// With at most 2^40 elements per tensor and numbers up to 2^31, the largest cost (two tensors and a
// number) is below 2^112.
constexpr std::int64_t most_elements = std::int64_t{1} << 40;
constexpr std::int64_t largest_number = std::int64_t{1} << 31;

bool is_plausible(const Arg& arg) {
  switch (arg.kind) {
    case Arg::Kind::none:
      return true;
    case Arg::Kind::integer:
      return arg.integer <= largest_number && arg.integer >= -largest_number;
    case Arg::Kind::list:
      return std::all_of(arg.values, arg.values + arg.rank, [](std::int64_t item) {
        return item <= largest_number && item >= -largest_number;
      });
    case Arg::Kind::tensors:
      return std::all_of(arg.items, arg.items + arg.rank, is_plausible);
    case Arg::Kind::tensor:
      break;
  }
  WideInt elements = 1;  // extents of 0 count as 1, so that they do not hide excessive ones
  for (int i = 0; i < arg.rank; ++i) {
    if (arg.values[i] < 0 || arg.values[i] > most_elements) return false;
    elements *= std::max<std::int64_t>(arg.values[i], 1);
    if (elements > most_elements) return false;
  }
  return true;
}

/// Whether the name of an operator states that it multiplies.
bool states_a_matmul(std::string_view name) {
  constexpr auto parts =
      std::to_array<std::string_view>({"gemm", "matmul", "attn", "attention", "fmha", "einsum"});
  constexpr std::string_view words =
      "mm bmm gmm spmm sddmm gemv addmm mha mla fmoe linear qlinear conv conv1d conv2d conv3d lstm "
      "gru";
  // Prepare operands, combine results, or report properties.
  constexpr std::string_view others =
      "get is has quantize dequantize pack prepack unpack repack swizzle shuffle "
      "rearrange permute merge combine workspace metadata scheduler size sizes offs mask";
  name = name.substr(name.find("::") + 2);
  name = name.substr(0, name.find('.'));
  bool multiplies = std::any_of(parts.begin(), parts.end(), [&](auto part) {
    return name.find(part) != std::string_view::npos;
  });
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('_', begin), name.size());
    const std::string_view word = name.substr(begin, end - begin);
    if (place_in_list(others, word) >= 0) return false;
    multiplies = multiplies || place_in_list(words, word) >= 0;
    begin = end + 1;
  }
  return multiplies;
}

}  // namespace

const OpRule* find_op_rule(std::string_view name) {
  if (const OpRule* rule = find_exactly(name)) return rule;
  // The overload follows the name; the name of a Python module contains dots.
  std::string_view base = name.substr(0, name.find('.', std::min(name.find("::"), name.size())));
  if (const OpRule* rule = find_exactly(base)) return rule;
  if (!base.ends_with('_')) return nullptr;
  base.remove_suffix(1);
  return find_exactly(base);
}

const OpRule* recognize_op(std::string_view name, std::span<const std::string_view> parameters) {
  const OpRule* forward = find_exactly("any::attention_forward");
  const OpRule* backward = find_exactly("any::attention_backward");
  const auto has = [&](std::string_view list) {
    return std::any_of(parameters.begin(), parameters.end(), [&](std::string_view parameter) {
      return place_in_list(list, parameter) >= 0;
    });
  };
  if (has("q query") && has("k key") && has("v value") && has("causal is_causal")) {
    // Only in the interface of flash-attn the order of heads and positions is known.
    const bool has_known_layout =
        std::any_of(parameters.begin(), parameters.end(), [](std::string_view parameter) {
          return parameter.find("seqlen") != std::string_view::npos ||
                 parameter.find("seq_len") != std::string_view::npos ||
                 parameter.find("window") != std::string_view::npos;
        });
    if (!has_known_layout) return find_exactly("any::matmul");
    return has("dout d_out d_output do dO dOutput grad grad_out grad_output") ? backward : forward;
  }
  return states_a_matmul(name) ? find_exactly("any::matmul") : nullptr;
}

WideInt AttentionBand::pairs(std::int64_t queries, std::int64_t keys) const {
  const std::int64_t everything = queries + keys;
  const auto limit = [&](std::int64_t away) {
    return away < 0 ? everything : std::min(away, everything);
  };
  const std::int64_t to_the_right = limit(right);
  return band_pairs(queries,
                    keys,
                    (bottom_right ? keys - queries : 0) + to_the_right,
                    limit(left) + to_the_right + 1);
}

std::optional<OpCost> PackedWork::cost(std::span<const std::int64_t> query_starts,
                                       std::span<const std::int64_t> key_starts) const {
  if (query_starts.size() != key_starts.size()) return std::nullopt;
  const auto times = [this](WideInt count) {
    return OpCost{.executed = {unit.executed.value * count},
                  .model = {unit.model.value * count},
                  .bytes = {},
                  .pairs = unit.pairs};
  };
  if (queries_at == keys_at) {
    const std::int64_t rows = query_starts.empty() ? 0 : query_starts.back();
    return rows < 0 ? std::nullopt : std::optional(times(rows));
  }
  WideInt pairs = 0;
  for (std::size_t i = 1; i < query_starts.size(); ++i) {
    const std::int64_t queries = query_starts[i] - query_starts[i - 1];
    const std::int64_t keys = key_starts[i] - key_starts[i - 1];
    if (queries < 0 || keys < 0) return std::nullopt;
    pairs += band.pairs(queries, keys);
  }
  return times(pairs);
}

std::optional<OpCost> unknown_cost(const OpCall& /*call*/) {
  return std::nullopt;
}

std::optional<OpCost> checked_flop_cost(const OpRule& rule, const OpCall& call) {
  const bool plausible =
      std::all_of(call.args.begin(), call.args.end(), is_plausible) && is_plausible(call.output);
  return plausible ? rule.flop_cost(call) : std::nullopt;
}

}  // namespace flopmeter
