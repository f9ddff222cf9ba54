// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a record stream: lines that are records survive a round trip, and the budget of all
// of them adds up.
#include <flopmeter/analysis/diagnosis.h>
#include <flopmeter/core/json_writer.h>
#include <flopmeter/runstore/record_stream.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

std::string text_of(const flopmeter::StepRecord& record) {
  std::string text;
  flopmeter::JsonWriter json{text};
  flopmeter::write_record(json, record);
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopmeter;
  std::string_view rest{reinterpret_cast<const char*>(data), size};
  Evidence evidence;
  while (!rest.empty() && evidence.steps.size() < 100) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (const auto record = parse_record(rest.substr(0, end))) {
      const std::string text = text_of(*record);
      const auto again = parse_record(text);
      if (!again || text_of(*again) != text) std::abort();
      evidence.steps.push_back(*record);
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  auto diagnosis = diagnose(evidence);
  if (!diagnosis) return 0;
  std::int64_t sum = 0;
  for (const BudgetLine& line : diagnosis->budget.lines) {
    if (line.nanoseconds < 0) std::abort();
    sum += line.nanoseconds;
  }
  if (!diagnosis->budget.lines.empty() && sum != diagnosis->budget.total) std::abort();
  std::string text;
  JsonWriter json{text};
  write_json(json, *diagnosis);
  return 0;
}
