// SPDX-License-Identifier: Apache-2.0
//
// MFU = tokens/s x 6 N / peak with the nominal N: 7e9 for a "7B", independent of its parameters; no
// attention.  FlagPerf has no documented rule for N of a mixture of experts; here it is the active
// parameters, rounded down to billions, which gives its 12e9 for Mixtral-8x7B.
// Pre-training a projector of a frozen language model is 2 N: use forward only.
#include "../src/closed_form.h"

#include <flopmeter/core/text.h>

#include <cctype>

namespace flopmeter {
namespace {

constexpr WideInt billion = 1'000'000'000;

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// The size in a name ("llama-2-7b": 7e9, "0.5B": 5e8), or 0.
WideInt size_in_name(std::string_view name) {
  for (std::size_t b = 1; b < name.size(); ++b) {
    const bool ends =
        b + 1 == name.size() || std::isalnum(static_cast<unsigned char>(name[b + 1])) == 0;
    if ((name[b] != 'b' && name[b] != 'B') || !ends || !is_digit(name[b - 1])) continue;
    std::size_t first = b;
    while (first > 0 && (is_digit(name[first - 1]) || name[first - 1] == '.')) --first;
    const std::string_view digits = name.substr(first, b - first);
    const auto point = digits.find('.');
    const auto whole = parse_int(digits.substr(0, point));
    if (!whole || *whole > 1'000'000) return 0;
    WideInt size = *whole * billion;
    if (point != std::string_view::npos) {
      WideInt unit = billion;
      for (const char c : digits.substr(point + 1)) size += (unit /= 10) * (c - '0');
    }
    return size;
  }
  return 0;
}

WideInt nominal_parameters(const Model& model) {
  const ParameterCounts counts = count_parameters(model);
  if (counts.active < billion) return counts.active;
  if (counts.active != counts.total) return counts.active / billion * billion;
  if (const WideInt size = size_in_name(model.name); size > 0) return size;
  return (counts.total + billion / 2) / billion * billion;
}

Counted count(const Model& model, const Batch& batch, const Training& training) {
  Counted counted;
  counted.parts[Component::parameters] = parameter_term(nominal_parameters(model), batch, training);
  return counted;
}

}  // namespace

extern constinit const Convention convention_flagperf{
    .name = "flagperf",
    .help = "6 N per token with the nominal N of the model's name (7B: 7e9), no attention",
    .source = "https://github.com/FlagOpen/FlagPerf",
    .count = count,
    .needs_operations = false,
    .example = {.model_flops = 6 * 1112 * 4, .bare_flops = 10 * 1'000'000 * 6}};

}  // namespace flopmeter
