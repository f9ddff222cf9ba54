// SPDX-License-Identifier: Apache-2.0
#include "eager_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace flopmeter {
namespace {

constexpr std::int64_t least_scores = 1024;  // elements: a router's softmax is smaller

bool contains(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

bool is_softmax(const SurveyRow& row) {
  return contains(row.name, "softmax") && !contains(row.name, "log_softmax");
}

/// Operators that an eager attention applies to its scores.
bool is_of_scores(const SurveyRow& row) {
  constexpr std::array parts = {"masked_fill", "aten::where", "aten::tril", "bitwise_not"};
  return is_softmax(row) || std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
           return contains(row.name, part);
         });
}

bool is_linear(const SurveyRow& row) {
  return row.kind == OpKind::priced && row.flops > 0 &&
         (contains(row.name, "aten::mm") || contains(row.name, "aten::addmm"));
}

}  // namespace

std::optional<EagerAttention> eager_attention(const Inquiry& inquiry) {
  if (inquiry.evidence.surveys.empty() || inquiry.ops.on_device) return std::nullopt;
  const auto surveys = without_interference(inquiry.evidence.surveys);
  const auto n = static_cast<double>(surveys.size());
  EagerAttention found;
  double linears = 0;
  double linear_seconds = 0;
  double linear_flops = 0;
  for (const SurveyResult& survey : surveys) {
    for (const SurveyRow& row : survey.rows) {
      if (contains(row.name, "scaled_dot_product") || contains(row.name, "flash_attention"))
        return std::nullopt;
      const auto calls = static_cast<double>(row.calls) / n;
      if (!row.backward && row.name == "aten::_softmax" && row.elements >= least_scores)
        found.softmax_calls += calls;
      if (!is_linear(row)) continue;
      if (!row.backward) linears += calls;
      linear_seconds += row.self.value;
      linear_flops += static_cast<double>(row.flops);
    }
  }
  if (found.softmax_calls == 0 || !(linear_flops > 0)) return std::nullopt;
  // Four linears a layer and one softmax, or one a head.
  found.per_head = found.softmax_calls > 0.6 * linears;
  double seconds = 0;
  double calls = 0;
  for (const SurveyResult& survey : surveys) {
    for (const SurveyRow& row : survey.rows) {
      if (row.phase == Phase::optimizer || is_linear(row)) continue;
      const bool product = row.kind == OpKind::priced;
      const auto row_calls = static_cast<double>(row.calls);
      const bool each_head = found.per_head && row_calls >= found.softmax_calls;
      if (!product && !each_head && !is_of_scores(row)) continue;
      // Its products would run no slower than the others, were they not so small.
      const double needed =
          product ? static_cast<double>(row.flops) * linear_seconds / linear_flops : 0;
      seconds += std::max(row.self.value - needed, 0.0) / n;
      calls += row_calls / n;
    }
  }
  const double pace = inquiry.ops.compute > 0
                          ? static_cast<double>(inquiry.sums.forward + inquiry.sums.backward) /
                                1e9 / static_cast<double>(inquiry.sums.steps) / inquiry.ops.compute
                          : 1;
  found.launching = std::llround(
      static_cast<double>(inquiry.waterfall.lost(Cause::launch_overhead)) *
      (inquiry.ops.calls > 0 && found.per_head ? std::min(1.0, calls / inquiry.ops.calls) : 0));
  found.nanoseconds =
      std::min(std::llround(seconds * pace * 1e9 * static_cast<double>(inquiry.sums.steps)) +
                   static_cast<long long>(found.launching),
               static_cast<long long>(inquiry.waterfall.total / 2));
  return found;
}

}  // namespace flopmeter
