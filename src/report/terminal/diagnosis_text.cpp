// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/text.h>
#include <flopmeter/report/diagnosis_text.h>
#include <flopmeter/report/style.h>
#include <flopmeter/report/terminal_text.h>

#include <algorithm>
#include <cmath>

namespace flopmeter {
namespace {

constexpr double smallest_line = 0.005;  // of the time; smaller causes share one line

std::string seconds_text(double seconds) {
  return duration({seconds});
}

double per_step(const Diagnosis& diagnosis, double seconds) {
  return seconds / static_cast<double>(diagnosis.totals.steps);
}

std::string faster_text(const std::optional<double>& speedup) {
  return speedup ? fixed(*speedup, 2) + " x faster" : "";
}

std::string mfu_then_text(const Finding& finding) {
  if (!finding.mfu_then) return "";
  return "MFU " + percent(*finding.mfu_then) +
         (finding.peak.empty() ? "" : " of the " + finding.peak + " peak");
}

/// The number of the first finding about this cause; "" if there is none.
std::string finding_number(const Diagnosis& diagnosis, const Cause& cause) {
  for (std::size_t i = 0; i < diagnosis.findings.size(); ++i) {
    if (cause_of(diagnosis.findings[i]) == cause.id) return "[" + std::to_string(i + 1) + "]";
  }
  return cause == causes::useful ? "= MFU" : "";
}

std::string folded_name(std::size_t count) {
  return "other, " + std::to_string(count) + (count == 1 ? " cause" : " causes");
}

struct BudgetRow {
  std::string name;
  double seconds = 0;
  std::string note;
  bool named = false;  ///< its share is stated elsewhere, too
};

/// Causes that took time, largest first; the small ones share the last row.
std::vector<BudgetRow> budget_rows(const Diagnosis& diagnosis) {
  const TimeBudget& budget = diagnosis.budget;
  const BudgetLine* loss = largest_loss(budget);
  std::vector<BudgetRow> rows;
  double small = 0;
  std::size_t folded = 0;
  for (const BudgetLine& line : budget.lines) {
    const double seconds = budget.seconds(line.cause);
    if (budget.share(line.cause) < smallest_line && line.cause != causes::useful) {
      small += seconds;
      ++folded;
      continue;
    }
    const std::string note = finding_number(diagnosis, line.cause);
    rows.push_back({std::string{line.cause.text}, seconds, note, &line == loss || !note.empty()});
  }
  if (folded > 0) rows.push_back({folded_name(folded), small, ""});
  return rows;
}

/// A share that MFU, the verdict, or a finding states is printed as it is there.
std::vector<std::string> shares_text(const std::vector<BudgetRow>& rows, double total) {
  std::vector<double> shares;
  std::vector<std::size_t> named;
  for (const BudgetRow& row : rows) {
    if (row.named) named.push_back(shares.size());
    shares.push_back(row.seconds / total);
  }
  return percents(shares, named);
}

std::string budget_table(const Diagnosis& diagnosis) {
  constexpr std::size_t longest_bar = 24;
  constexpr std::size_t numbers = 46;  // cells of a row without name and bar
  const TimeBudget& budget = diagnosis.budget;
  std::size_t names = cells("where the time went");
  for (const BudgetLine& line : budget.lines) names = std::max(names, cells(line.cause.text));
  const std::size_t width = std::max(text_width(), numbers + 14);
  names = std::min(names, width - numbers);
  const std::size_t bar = std::min(longest_bar, width - numbers - names);
  Table table{"llrrrl"};
  table.row({dim("where the time went"), "", dim("share"), dim("time"), dim("per step"), ""});
  const double total = static_cast<double>(budget.total) / 1e9;
  const std::vector<BudgetRow> rows = budget_rows(diagnosis);
  const std::vector<std::string> shares = shares_text(rows, total);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    table.row({cut(rows[i].name, names),
               accent(block_bar(rows[i].seconds / rows.front().seconds, bar)),
               shares[i],
               seconds_text(rows[i].seconds),
               dim(seconds_text(per_step(diagnosis, rows[i].seconds))),
               rows[i].note});
  }
  table.row({bold("train steps"),
             "",
             bold("100.0 %"),
             bold(seconds_text(total)),
             dim(seconds_text(per_step(diagnosis, total))),
             ""});
  return table.text();
}

std::string what_if_table(const Diagnosis& diagnosis) {
  Table table{"lrrl"};
  table.row({dim("what would help"), dim("saves"), "", dim("then")});
  const auto row = [&](const std::string& name, const Finding& finding) {
    table.row({name,
               percent(*finding.share),
               bold(faster_text(finding.speedup)),
               mfu_then_text(finding)});
  };
  bool any = false;
  for (std::size_t i = 0; i < diagnosis.findings.size(); ++i) {
    const Finding& finding = diagnosis.findings[i];
    if (!finding.share) continue;
    any = true;
    row("[" + std::to_string(i + 1) + "] " + finding.rule, finding);
  }
  if (diagnosis.together) row("all together", *diagnosis.together);
  return any ? table.text() + "\n" : "";
}

std::string findings_text(const Diagnosis& diagnosis) {
  std::string text;
  for (std::size_t i = 0; i < diagnosis.findings.size(); ++i) {
    const Finding& finding = diagnosis.findings[i];
    const std::string number = "[" + std::to_string(i + 1) + "] ";
    const std::string below(number.size(), ' ');
    text += paragraph(bold(number), bold(finding.rule) + "  " + printable(finding.summary));
    text += paragraph(
        below + "Evidence: ",
        printable(finding.evidence) +
            (finding.confidence ? dim(" (confidence " + fixed(100 * *finding.confidence, 0) + " %)")
                                : ""));
    text += paragraph(below + "Try: ", printable(finding.recommendation));
  }
  return text;
}

std::string cost_text(const Diagnosis& diagnosis, const DeviceCost& cost) {
  const double per_hour = cost.per_device_hour * cost.devices;
  std::string text = "the run costs " + fixed(per_hour, 2) + " per hour";
  if (const auto mfu = diagnosis.mfu(); mfu && *mfu <= 1)
    text += ", of which " + fixed(per_hour * (1 - *mfu), 2) + " buy no useful work";
  for (const Finding& finding : diagnosis.findings) {
    if (!finding.share) continue;
    return text + "; the first recommendation saves " + fixed(per_hour * *finding.share, 2) +
           " per hour for the same work";
  }
  return text;
}

/// Where the published results of the verdict come from, or one line if there are none.
std::string published_sources(const Diagnosis& diagnosis) {
  if (!diagnosis.published)
    return paragraph("", dim("model not known: no comparison with published results"));
  const auto links = diagnosis.published->links();
  if (links.empty()) return paragraph("", dim(printable(diagnosis.published->text)));
  std::string list;
  for (const std::string_view link : links) list.append(list.empty() ? "" : ", ").append(link);
  return paragraph(dim("Sources: "), dim(list));
}

/// Whether the finding is about the largest loss, which the verdict names.
bool explains_verdict(const Diagnosis& diagnosis, const Finding& finding) {
  const BudgetLine* loss = largest_loss(diagnosis.budget);
  return loss == nullptr || finding.savings.empty() || cause_of(finding) == loss->cause.id;
}

/// Verdict, reason, and next step: what a reader needs if they read three lines.
std::string head_text(const Diagnosis& diagnosis) {
  std::string text = paragraph(bold("Verdict: "), printable(verdict(diagnosis)));
  if (diagnosis.findings.empty()) {
    text += paragraph(bold("Why: "), "no rule found a cause worth 1 % of the time");
  } else {
    const Finding& first = diagnosis.findings.front();
    const bool explains = explains_verdict(diagnosis, first);
    text += paragraph(bold(explains ? "Why: " : "Largest fix: "), printable(first.summary));
    std::string then = faster_text(first.speedup);
    if (const std::string mfu = mfu_then_text(first); !mfu.empty()) then += ", " + mfu;
    text += paragraph(bold("Next: "),
                      printable(first.recommendation) + (then.empty() ? "" : " (" + then + ")"));
  }
  std::string facts = grouped(diagnosis.totals.steps) +
                      (diagnosis.totals.steps == 1 ? " train step" : " train steps");
  if (!diagnosis.device.empty()) facts = printable(diagnosis.device) + ", " + facts;
  if (const auto tokens = diagnosis.totals.tokens_per_second())
    facts += ", " + grouped(static_cast<WideInt>(std::llround(*tokens))) + " tokens/s";
  if (const auto goodput = diagnosis.totals.goodput())
    facts += ", goodput " + percent(*goodput) + " (train steps, of the run's time)";
  for (const auto& [tag, other] : diagnosis.totals.other_tags) {
    if (other.seconds > 0)
      facts += ", " + std::string{to_string(tag)} + " " + duration(Seconds{other.seconds});
  }
  return text + paragraph("", dim(facts)) + published_sources(diagnosis);
}

struct ChangeRow {
  std::string name;
  double before = 0;  ///< seconds of a mean step
  double after = 0;
};

/// Causes, largest change first; those that are small in both runs share the last row.
std::vector<ChangeRow> change_rows(const Diagnosis& before, const Diagnosis& after) {
  const double least_before = smallest_line * per_step(before, before.totals.seconds);
  const double least_after = smallest_line * per_step(after, after.totals.seconds);
  std::vector<ChangeRow> rows;
  ChangeRow small;
  std::size_t folded = 0;
  for (const Change& change : compare(before, after)) {
    const bool is_small = change.before < least_before && change.after < least_after;
    if (is_small && change.cause != causes::useful) {
      small.before += change.before;
      small.after += change.after;
      small.name = folded_name(++folded);
    } else {
      rows.push_back({std::string{change.cause.text}, change.before, change.after});
    }
  }
  if (folded > 0) rows.push_back(small);
  return rows;
}

double per_token(const Diagnosis& diagnosis, double seconds) {
  return seconds / static_cast<double>(diagnosis.totals.tokens.amount);
}

}  // namespace

std::string diagnosis_text(const Diagnosis& diagnosis, const std::optional<DeviceCost>& cost) {
  std::string text = head_text(diagnosis) + "\n";
  if (!diagnosis.budget.lines.empty()) text += budget_table(diagnosis) + "\n";
  text += what_if_table(diagnosis) + findings_text(diagnosis);
  for (const std::string& missing : diagnosis.budget.missing_signals)
    text += paragraph(warning("Not measured: "), printable(missing));
  if (cost) text += paragraph("", cost_text(diagnosis, *cost));
  return text;
}

std::string comparison_text(const Diagnosis& before, const Diagnosis& after) {
  const auto mfu = [](const Diagnosis& diagnosis) {
    return diagnosis.mfu()
               ? percent(*diagnosis.mfu()) +
                     (diagnosis.peak.empty() ? "" : " of the " + diagnosis.peak + " peak")
               : std::string{"n/a"};
  };
  const bool tokens = before.totals.tokens.amount > 0 && after.totals.tokens.amount > 0;
  const double step_before = per_step(before, before.totals.seconds);
  const double step_after = per_step(after, after.totals.seconds);
  std::string text = bold("MFU " + mfu(before) + " -> " + mfu(after)) + "\n";
  const double speedup =
      tokens ? per_token(before, before.totals.seconds) / per_token(after, after.totals.seconds)
             : step_before / step_after;
  text +=
      bold(fixed(speedup, 2) + (tokens ? " x the tokens" : " x the steps") + " per second") + "\n";
  Table table{"lrrrrrr"};
  table.row({dim("time by cause"),
             dim("per step: before"),
             dim("after"),
             dim("change"),
             dim(tokens ? "per token: before" : ""),
             dim(tokens ? "after" : ""),
             dim(tokens ? "change" : "")});
  const auto signed_text = [](double seconds) {
    constexpr double least = 0.5e-9;  // that duration() shows
    if (std::abs(seconds) < least) return seconds_text(0);
    const std::string shown = (seconds < 0 ? "-" : "+") + seconds_text(std::abs(seconds));
    return seconds < 0 ? better(shown) : worse(shown);
  };
  const auto row = [&](const std::string& name, double a, double b) {
    std::vector<std::string> cells = {name, seconds_text(a), seconds_text(b), signed_text(b - a)};
    if (tokens) {
      const double token_a = per_token(before, a * static_cast<double>(before.totals.steps));
      const double token_b = per_token(after, b * static_cast<double>(after.totals.steps));
      cells.push_back(seconds_text(token_a));
      cells.push_back(seconds_text(token_b));
      cells.push_back(signed_text(token_b - token_a));
    } else {
      cells.resize(7);
    }
    table.row(std::move(cells));
  };
  for (const ChangeRow& change : change_rows(before, after))
    row(change.name, change.before, change.after);
  row(bold("step"), step_before, step_after);
  return text + "\n" + table.text();
}

}  // namespace flopmeter
