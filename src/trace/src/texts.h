// SPDX-License-Identifier: Apache-2.0
//
// Properties of the texts of a trace: found once for each text instead of once for each event.
#pragma once

#include <flopmeter/trace/trace.h>

#include <string_view>
#include <vector>

namespace flopmeter {

/// The property of each text of the trace, by TextId.
template <class Property>
auto by_text(const Trace& trace, const Property& property) {
  std::vector<decltype(property(std::string_view{}))> all;
  all.reserve(trace.texts.size());
  for (const std::string_view text : trace.texts) all.push_back(property(text));
  return all;
}

}  // namespace flopmeter
