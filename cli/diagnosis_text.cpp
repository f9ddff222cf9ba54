// SPDX-License-Identifier: Apache-2.0
#include "diagnosis_text.h"

#include "style.h"

#include <flopmeter/core/text.h>
#include <flopmeter/report/terminal_text.h>

#include <algorithm>
#include <cmath>

namespace flopmeter {
namespace {

std::string points(double value) {
  return fixed(100 * value, 1);
}

std::string signed_points(double value) {
  return (value < 0 ? "" : "+") + points(value);
}

std::string seconds(std::int64_t nanoseconds) {
  return duration({static_cast<double>(nanoseconds) / 1e9});
}

std::string waterfall_table(const Waterfall& falls) {
  constexpr std::size_t numbers = 31;  // cells of a row beside the loss and its bar
  constexpr std::size_t longest_bar = 30;
  std::size_t names = 0;
  double largest = 0;
  for (const Loss& loss : falls.losses) {
    if (loss.nanoseconds == 0) continue;
    names = std::max(names, cells(describe(loss.cause)));
    largest = std::max(largest, loss.mfu_points);
  }
  const std::size_t width = std::max(text_width(), numbers + 10);
  names = std::min(names, width - numbers);
  const std::size_t room = std::min(longest_bar, width - numbers - names);
  Table table{"rrlrl"};
  double mfu = 1;
  table.row({bold("100.0 %"), "", bold("peak of the device"), "", ""});
  for (const Loss& loss : falls.losses) {
    if (loss.nanoseconds == 0) continue;
    mfu -= loss.mfu_points;
    table.row({percent(mfu),
               "-" + points(loss.mfu_points),
               cut(describe(loss.cause), names),
               dim(seconds(loss.nanoseconds)),
               accent(largest > 0 ? block_bar(loss.mfu_points / largest, room) : "")});
  }
  table.row({bold(percent(falls.mfu)), "", bold("MFU"), "", ""});
  return table.text();
}

std::string money(const Diagnosis& diagnosis, const Price& price) {
  const double an_hour = price.per_device_hour * price.devices;
  std::string text = "the run costs " + fixed(an_hour, 2) + " an hour, of which " +
                     fixed(an_hour * (1 - diagnosis.waterfall.mfu), 2) + " buy no useful work";
  for (const Finding& finding : diagnosis.findings) {
    if (!finding.expected_mfu) continue;
    return text + "; the first recommendation saves " +
           fixed(an_hour * (1 - diagnosis.waterfall.mfu / *finding.expected_mfu), 2) +
           " an hour for the same work";
  }
  return text;
}

std::string findings_text(const Diagnosis& diagnosis) {
  if (diagnosis.findings.empty()) return "no finding: nothing that a known recommendation would change\n";
  std::string text;
  int number = 0;
  for (const Finding& finding : diagnosis.findings) {
    const std::string begin = std::to_string(++number) + ". ";
    const std::string below(begin.size(), ' ');
    text += number > 1 ? "\n" : "";
    text += paragraph(bold(begin), bold(finding.rule) + "  " + printable(finding.summary));
    if (finding.mfu_points) {
      text += paragraph(
          below,
          "costs " + points(*finding.mfu_points) + " MFU points; without it MFU would be " +
              percent(*finding.expected_mfu) +
              (finding.confidence ? dim(" (confidence " + percent(*finding.confidence) + ")")
                                  : ""));
    }
    text += paragraph(below + "evidence: ", printable(finding.evidence));
    text += paragraph(below + "recommendation:   ", printable(finding.recommendation));
  }
  return text;
}

}  // namespace

std::string diagnosis_text(const Diagnosis& diagnosis, const std::optional<Price>& price) {
  const Waterfall& falls = diagnosis.waterfall;
  std::string text =
      paragraph("",
                bold("MFU " + percent(falls.mfu)) + ", " + std::string{verdict(falls.mfu)} +
                    dim(" (over 50 % is good, 10 to 20 % is low)") + "; " +
                    grouped(diagnosis.sums.steps) + " steps, " + seconds(falls.total));
  if (std::abs(diagnosis.sums.recorded_mfu - falls.mfu) > 0.005) {
    text += paragraph(
        "",
        dim("the steps alone had " + percent(diagnosis.sums.recorded_mfu) +
            " of the peak of the format they ran in; here all time counts, padding does not, "
            "and the peak is that of the fastest format"));
  }
  text += "\n" + waterfall_table(falls) + "\n" + findings_text(diagnosis);
  for (const std::string& missing : falls.missing)
    text += paragraph(warning("not seen: "), printable(missing));
  if (price) text += paragraph("", money(diagnosis, *price));
  return text;
}

std::string comparison_text(const Diagnosis& before, const Diagnosis& after) {
  std::string text =
      bold("MFU " + percent(before.waterfall.mfu) + " -> " + percent(after.waterfall.mfu)) + " (" +
      signed_points(after.waterfall.mfu - before.waterfall.mfu) + " points)\n\n";
  Table table{"lrrr"};
  table.row({dim("points lost to"), dim("before"), dim("after"), dim("change of MFU")});
  for (const Change& change : compare(before.waterfall, after.waterfall)) {
    table.row({std::string{describe(change.cause)},
               points(change.before),
               points(change.after),
               change.mfu_change < 0 ? worse(signed_points(change.mfu_change))
                                     : better(signed_points(change.mfu_change))});
  }
  return text + table.text();
}

}  // namespace flopmeter
