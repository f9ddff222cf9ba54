// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/finding.h>
#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/text.h>

namespace flopmeter {

void write_json(JsonWriter& json, const Finding& finding) {
  json.begin_object()
      .field("rule", finding.rule)
      .field("summary", finding.summary)
      .field("evidence", finding.evidence)
      .field("recommendation", finding.recommendation)
      .field("share", finding.share)
      .field("seconds", finding.seconds)
      .field("speedup", finding.speedup)
      .field("mfu_then", finding.mfu_then)
      .field("confidence", finding.confidence)
      .field("rank", finding.rank)
      .end_object();
}

std::string headline(const Finding& finding) {
  const std::string saving = finding.share ? ", saves " + percent(*finding.share) : "";
  return finding.rule + saving + ": " + finding.summary;
}

}  // namespace flopmeter
